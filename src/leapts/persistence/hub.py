"""`LeapTS` with the methods of the Hugging Face Hub; it shares the model folder of `LeapTS.save`."""

from pathlib import Path
from typing import Any, Self

from leapts import forecasting
from leapts.errors import ModelFileError
from leapts.persistence.save import CARD, CONFIG, WEIGHTS

try:
    from huggingface_hub import ModelHubMixin, snapshot_download
    from huggingface_hub.errors import HfHubHTTPError
except ImportError as error:
    raise ImportError("the Hub needs: pip install 'leapts[hub]'") from error


class LeapTS(forecasting.LeapTS, ModelHubMixin):
    """The forecaster with `save_pretrained`, `from_pretrained` and `push_to_hub`."""

    def save_pretrained(
        self,
        save_directory: str | Path,
        *,
        repo_id: str | None = None,
        push_to_hub: bool = False,
        config: None = None,  # noqa: ARG002 - passed by the mixin; the model has its own
        model_card_kwargs: None = None,  # noqa: ARG002 - passed by the mixin; the model has its own card
        **push_to_hub_kwargs: Any,
    ) -> str | None:
        """Save the model folder, optionally push it, and return the URL of the commit.

        The repository has by default the name of the folder; `config` and `model_card_kwargs` are not used.
        """
        folder = Path(save_directory)
        folder.parent.mkdir(parents=True, exist_ok=True)
        self.save(folder)
        if not push_to_hub:
            return None
        address: str = self.push_to_hub(repo_id or folder.name, **push_to_hub_kwargs)
        return address

    @classmethod
    def from_pretrained(
        cls,
        pretrained_model_name_or_path: str | Path,
        *,
        force_download: bool = False,
        token: str | bool | None = None,
        cache_dir: str | Path | None = None,
        local_files_only: bool = False,
        revision: str | None = None,
    ) -> Self:
        """Load a model from a folder, or from a repository of the Hub such as `user/model`, through its cache.

        Options are those of `huggingface_hub.snapshot_download`.

        Raises:
            ModelFileError: When there is no such model, it cannot be downloaded, or it is damaged.
        """
        folder = Path(pretrained_model_name_or_path)
        if folder.is_dir():
            return cls.load(folder)
        try:
            downloaded = snapshot_download(
                str(pretrained_model_name_or_path),
                revision=revision,
                cache_dir=cache_dir,
                force_download=force_download,
                token=token,
                local_files_only=local_files_only,
                allow_patterns=[CONFIG, WEIGHTS, CARD],
            )
        except (OSError, ValueError, HfHubHTTPError) as error:
            reason = str(error).strip().split("\n")[0]
            raise ModelFileError(
                f"{pretrained_model_name_or_path} is not a folder, and no model of that name could be downloaded "
                f"({reason}); check the name, the network and the token"
            ) from error
        return cls.load(downloaded)
