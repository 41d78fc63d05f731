# Lets the worker save and leave, and ends what does not leave in time. Set before: folder, unit, seconds, forget.
ours() {
    ls -l /proc/[0-9]*/exe 2>/dev/null | grep -F " -> $folder/installed/" | sed 's|.* /proc/\([0-9]*\)/exe -> .*|\1|'
}
: "${XDG_RUNTIME_DIR:=/run/user/$(id -u)}"
export XDG_RUNTIME_DIR
units=${XDG_CONFIG_HOME:-$HOME/.config}/systemd/user
was=$(ours)
if [ -e "$units/$unit" ]; then
    systemctl --user disable --quiet --now "$unit"
    rm -f "$units/$unit"
    systemctl --user daemon-reload
fi
pid=$(cat "$folder/worker.pid" 2>/dev/null)
case " $(ours | tr '\n' ' ') " in
    *" ${pid:-none} "*) kill -TERM "$pid" ;;
    *) ours | while read -r one; do kill -TERM "$one"; done ;;
esac
while [ -n "$(ours)" ] && [ "$seconds" -gt 0 ]; do
    sleep 1
    seconds=$((seconds - 1))
done
if [ -n "$(ours)" ]; then
    ours | while read -r one; do kill -KILL "$one"; done
    echo togl.killed=yes
    sleep 1
fi
rm -f "$folder/worker.pid"
[ "$forget" != yes ] || rm -f "$folder/worker.token"
[ -z "$was" ] || echo togl.ran=yes
printf 'togl.left=%s\n' "$(ours | wc -l)"
