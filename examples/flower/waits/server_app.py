"""The coordinator: it conducts the study of study.toml."""

from pathlib import Path

from sottovoce.federation.flower.server import server_app

app = server_app(Path(__file__).parent / "study.toml")
