"""`LeapTS` in the form the Hugging Face Hub knows: `from leapts.persistence.hub import LeapTS`.

The folder is the one `LeapTS.save` writes; nothing in it is added or renamed for the Hub.
"""

from pathlib import Path
from typing import Any, Self

from leapts import forecasting
from leapts.errors import ModelFileError
from leapts.persistence.save import CARD, CONFIG, WEIGHTS

try:
    from huggingface_hub import ModelHubMixin, snapshot_download
    from huggingface_hub.errors import HfHubHTTPError
except ImportError as error:
    raise ImportError("the hub form needs: pip install 'leapts[hub]'") from error


class LeapTS(forecasting.LeapTS, ModelHubMixin):
    """The forecaster with `save_pretrained`, `from_pretrained` and `push_to_hub`."""

    def save_pretrained(
        self,
        save_directory: str | Path,
        *,
        repo_id: str | None = None,
        push_to_hub: bool = False,
        config: None = None,  # noqa: ARG002 - the mixin passes it; the configuration is the model's own
        model_card_kwargs: None = None,  # noqa: ARG002 - the same with the card
        **push_to_hub_kwargs: Any,
    ) -> str | None:
        """Write the model as a folder, in one move, and push it where asked to.

        Args:
            save_directory: The folder; those above it are made.
            repo_id: The repository to push to; by default called like the folder.
            push_to_hub: Whether to push.
            config: Always the model's own.
            model_card_kwargs: None: the card is the model's own.
            push_to_hub_kwargs: Further options of `push_to_hub`.

        Returns:
            The address of the commit, when pushed.
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
        """Read a model: from a folder, without a network; or from the Hub, through its cache.

        Args:
            pretrained_model_name_or_path: A folder, or a repository's name such as `user/model`.
            force_download: Whether to download again what is in the cache.
            token: For repositories that are not public.
            cache_dir: Where downloads are kept.
            local_files_only: Whether to use what is in the cache alone.
            revision: A branch, tag or commit.

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
