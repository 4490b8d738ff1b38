"""A FastAPI endpoint that does nothing: what any server on this computer costs, with the server's own settings."""

import sys

import uvicorn
from fastapi import FastAPI

app = FastAPI()


@app.post("/v1/forecast")
async def nothing() -> dict[str, str]:
    """The request is not even read."""
    return {}


if __name__ == "__main__":
    uvicorn.run(app, port=int(sys.argv[1]), log_level="error", access_log=False)
