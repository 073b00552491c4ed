"""Settings of every kernel that runs a page, through IPYTHONDIR: see tools/pages/kernel.py."""

import sys
from pathlib import Path

c = get_config()  # type: ignore[name-defined]  # noqa: F821 - IPython defines it

sys.path.append(str(Path(__file__).resolve().parents[4]))  # the project's folder, for tools
c.InteractiveShellApp.extensions = ["tools.pages.kernel"]
# Several kernels run at once, and none is interactive.
c.HistoryManager.enabled = False
