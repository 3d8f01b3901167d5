"""``python -m equipoise`` is the command line."""

from equipoise.cli.app import main

__all__: list[str] = []

if __name__ == "__main__":
    main()
