"""What a run looks like on paper: JUnit XML, Markdown and a page of HTML (JSON is `Run.to_json`)."""
