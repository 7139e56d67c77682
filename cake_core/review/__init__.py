"""Two versions of rule packs compared: what became looser, what each says of kernels, and whether a change may be merged.

`git.py` and `snapshot.py` bring a version onto the disk, `compare.py` compares rules, `packs.py` packs, `verdicts.py` judges kernels, `gate.py`
refuses what a verifier must not let pass.
"""
