# Makes an installation the current one and starts its worker. Set before: folder, key, programs, unit, with_systemd; the files
# worker.token.new, start.new and, for systemd, unit.new are written.
mv -f "$folder/worker.token.new" "$folder/worker.token" || exit 1
mv -f "$folder/start.new" "$folder/start" || exit 1
ln -s "installed/$key" "$folder/worker.new.$$" && mv -T "$folder/worker.new.$$" "$folder/worker" || exit 1
[ ! -e "$folder/worker.log" ] || mv -f "$folder/worker.log" "$folder/worker.log.1"
rm -f "$folder/worker.pid"
if [ "$with_systemd" = yes ]; then
    : "${XDG_RUNTIME_DIR:=/run/user/$(id -u)}"
    export XDG_RUNTIME_DIR
    units=${XDG_CONFIG_HOME:-$HOME/.config}/systemd/user
    mkdir -p "$units" && mv -f "$folder/unit.new" "$units/$unit" || exit 1
    systemctl --user daemon-reload && systemctl --user enable --quiet "$unit" && systemctl --user restart "$unit" || exit 1
else
    rm -f "$folder/unit.new"
    setsid nohup sh "$folder/start" </dev/null >/dev/null 2>&1 &
fi
# What no installation uses any more.
used=$(readlink "$folder/worker/lib/togl/torch")
for old in "$folder"/installed/*; do [ "${old##*/}" = "$key" ] || rm -rf "$old"; done
for old in "$folder"/parts/libtorch-*; do [ "$old/torch" = "$used" ] || rm -rf "$old"; done
for old in "$folder"/parts/programs-*; do [ "${old##*/}" = "$programs" ] || rm -rf "$old"; done
echo togl.started=yes
