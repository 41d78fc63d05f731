# Says how much of a part has arrived. Set before: folder, sha.
umask 077
mkdir -p "$folder/incoming" "$folder/parts" || exit 1
bytes=0
[ ! -e "$folder/incoming/$sha.part" ] || bytes=$(wc -c <"$folder/incoming/$sha.part")
printf 'togl.bytes=%s\n' $bytes
