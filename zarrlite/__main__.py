"""`python -m zarrlite`: run the command `zarrlite`."""

import sys

from zarrlite.tools.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
