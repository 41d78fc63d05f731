# Checks a part that has arrived and unpacks it beside its place; it gets its name when it is whole. Set before: folder, sha,
# part.
umask 077
file=$folder/incoming/$sha.part
new=$folder/parts/$part.new.$$
if [ "$(sha256sum <"$file" | cut -d ' ' -f 1)" != "$sha" ]; then
    rm -f "$file"
    echo togl.damaged=yes
    exit 0
fi
trap 'rm -rf "$new"' EXIT
mkdir "$new" && tar -xzof "$file" -C "$new" || exit 1
[ -d "$folder/parts/$part" ] || mv "$new" "$folder/parts/$part" || exit 1
rm -f "$file"
echo togl.unpacked=yes
