"""Reports of a run: JUnit XML, Markdown and an HTML page (JSON is `Run.to_json`)."""
