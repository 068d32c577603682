"""The helpers of the package's own tests are used here too."""

import os
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "crates" / "python" / "tests"))

os.environ["AWS_ACCESS_KEY_ID"], os.environ["AWS_SECRET_ACCESS_KEY"] = "key", "secret"

# pyiceberg looks at these once, when it is imported.
CATALOG = tempfile.TemporaryDirectory()
os.environ["PYICEBERG_CATALOG__LOCAL__TYPE"] = "sql"
os.environ["PYICEBERG_CATALOG__LOCAL__URI"] = f"sqlite:///{CATALOG.name}/catalog.db"
os.environ["PYICEBERG_CATALOG__LOCAL__WAREHOUSE"] = f"file://{CATALOG.name}"
