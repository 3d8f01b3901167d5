"""``python -m equipoise`` is the command line."""

from equipoise.cli.app import main

if __name__ == "__main__":
    main()
