"""gccost: what automatic cleanup costs in Go and Java, measured and judged."""

from gccost.errors import GccostError, MissingTool

__all__ = ["GccostError", "MissingTool"]
