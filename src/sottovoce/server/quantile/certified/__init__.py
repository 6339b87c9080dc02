"""The certified interval and the confidence sequence: valid for every distribution, in finite samples."""
