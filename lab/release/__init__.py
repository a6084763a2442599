"""What users install: wheels for Linux, the source distribution, and both tried in environments of their own.

* `wheels`: builds the wheels, for x86-64 and aarch64 and every supported CPython, and audits them.
* `debian`: CPythons to build for and to run on, from Debian's packages.
* `api`: the list of public names.
* `sdist`: builds the source distribution.
* `trial`: installs a wheel into a fresh environment, and runs `warpmma verify` and tests on it.

`docs/wheels.md` says how to use them. What is built goes into `build/release`.
"""
