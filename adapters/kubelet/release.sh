# For the scripts that build $release in the folder of releases/: sets $tags, the build tags since_X_Y
# for every release up to this one, and until_X_Y for this one and later.
if [ ! -f "releases/$release.mod" ]; then
    echo "$0: no releases/$release.mod; choose one of: $(cd releases && echo *.mod)" >&2
    exit 2
fi
tags=
bound=since
for name in $(cd releases && ls -- *.mod | sort -V); do
    minor=$(basename "$name" .mod | tr . _)
    if [ "$name" = "$release.mod" ]; then
        tags="$tags since_$minor"
        bound=until
    fi
    tags="$tags ${bound}_$minor"
done
