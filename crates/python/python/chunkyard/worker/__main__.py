"""`python -m chunkyard.worker`."""

import sys

from chunkyard.worker._command import main

if __name__ == "__main__":
    sys.exit(main())
