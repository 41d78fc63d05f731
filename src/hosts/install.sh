# Puts a worker program and its libtorch together in a folder of their own and tries it; nothing uses it yet. Set before:
# folder, key, programs, torch.
umask 077
[ ! -d "$folder/installed/$key" ] || exit 0
new=$folder/installed/$key.new.$$
trap 'rm -rf "$new"' EXIT
mkdir -p "$new/bin" "$new/lib/togl" || exit 1
program=$folder/parts/$programs/bin/togl-worker
ln "$program" "$new/bin/togl-worker" 2>/dev/null || cp -p "$program" "$new/bin/togl-worker" || exit 1
ln -s "$torch" "$new/lib/togl/torch" || exit 1
said=$("$new/bin/togl-worker" version 2>&1) || {
    printf 'the worker does not run with %s: %s\n' "$torch" "$(printf '%s\n' "$said" | tail -n 1)" >&2
    exit 1
}
mv "$new" "$folder/installed/$key"
