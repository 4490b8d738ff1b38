"""A FastAPI endpoint that does nothing, with the server's settings: the cost of any server on this machine."""

import sys

import uvicorn
from fastapi import FastAPI

app = FastAPI()


@app.post("/v1/forecast")
async def nothing() -> dict[str, str]:
    """Return without reading the request."""
    return {}


if __name__ == "__main__":
    uvicorn.run(app, port=int(sys.argv[1]), log_level="error", access_log=False)
