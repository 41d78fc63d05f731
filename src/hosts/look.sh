# Looks at a host and prints what it sees, one `togl.KEY=VALUE` a line. Changes nothing. Set before: folder, torch,
# thorough.
say() { printf 'togl.%s=%s\n' "$1" "$2"; }
in_folder() { # the physical path, as the kernel names running programs by it
    case $folder in '~') folder=$HOME ;; '~/'*) folder=$HOME/${folder#'~/'} ;; esac
    place=$folder rest=
    while [ ! -d "$place" ] && [ -n "$place" ]; do rest=/${place##*/}$rest place=${place%/*}; done
    place=$(cd -P "${place:-/}" && pwd -P)
    folder=${place%/}$rest
}
torch_at() { # folder, asked
    [ -e "$1/lib/libtorch_cpu.so" ] || return 1
    if [ -r "$1/version.py" ]; then
        version=$(sed -n "s/^__version__ = '\(.*\)'.*/\1/p" "$1/version.py")
    else
        version=$(head -n 1 "$1/build-version" 2>/dev/null)
    fi
    cuda=no
    [ ! -e "$1/lib/libtorch_cuda.so" ] || cuda=yes
    say torch "$2 $cuda ${version:-unknown} $1"
}
torch_in() { # Python environment, asked
    found=1
    for site in "$1"/lib/python3*/site-packages "$1"/lib/python3*/dist-packages; do
        torch_at "$site/torch" "$2" && found=0
    done
    return $found
}
find_torch() {
    if [ -n "$torch" ]; then
        case $torch in '~/'*) torch=$HOME/${torch#'~/'} ;; esac
        torch_in "$torch" yes || torch_at "$torch" yes || torch_at "$torch/torch" yes
        return
    fi
    for home in "${VIRTUAL_ENV-}" "${CONDA_PREFIX-}" "$HOME/.venv" "$HOME/venv" "$HOME/miniforge3" "$HOME/miniconda3" \
        "$HOME/anaconda3" /opt/conda "$HOME"/miniforge3/envs/* "$HOME"/miniconda3/envs/* "$HOME"/anaconda3/envs/*; do
        [ -z "$home" ] || [ ! -d "$home" ] || torch_in "$home" no
    done
    where='import importlib.util as u; s = u.find_spec("torch"); print(s.submodule_search_locations[0] if s else "")'
    where=$(python3 -c "$where" 2>/dev/null) && [ -n "$where" ] && torch_at "$where" no
}
kernel=/proc/driver/nvidia/version
find_driver() {
    # The first word that is a version: what stands before it differs from module to module.
    if [ -r "$kernel" ]; then
        say driver "$(awk '/Kernel Module/ { for (i = 1; i <= NF; i++) if ($i ~ /^[0-9]+(\.[0-9]+)+$/) { print $i; exit } }' "$kernel")"
    elif command -v nvidia-smi >/dev/null 2>&1; then
        say driver "$(nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>/dev/null | sed -n '1s/[^0-9.].*//p')"
    fi
}
find_parts() {
    for part in "$folder"/parts/*; do
        case $part in *.new.* | *'*') ;; *) say part "${part##*/}" ;; esac
    done
    [ ! -L "$folder/worker" ] || say installed "$(basename "$(readlink "$folder/worker")")"
    for file in start worker.token; do
        [ ! -r "$folder/$file" ] || say "${file#worker.}" "$(sha256sum <"$folder/$file" | cut -d ' ' -f 1)"
    done
}
find_worker() {
    pid=$(cat "$folder/worker.pid" 2>/dev/null)
    case $(readlink "/proc/${pid:-none}/exe" 2>/dev/null) in
        "$folder/installed/"*) say running yes ;;
    esac
    say worker "$(sed -n 's/.* worker starts worker=\([^ ]*\).*/\1/p' "$folder/worker.log" 2>/dev/null | tail -n 1)"
    tail -n 6 "$folder/worker.log" 2>/dev/null | while IFS= read -r line; do say log "$line"; done
}
find_system() {
    say system "$(uname -s)"
    say arch "$(uname -m)"
    say glibc "$(getconf GNU_LIBC_VERSION 2>/dev/null | cut -d ' ' -f 2)"
    say free "$(df -Pk "$place" | awk 'NR == 2 { print $4 }')"
    [ ! -w "$place" ] || say writable yes
    for tool in tar gzip sha256sum setsid nohup; do
        command -v $tool >/dev/null 2>&1 || say lacks $tool
    done
    : "${XDG_RUNTIME_DIR:=/run/user/$(id -u)}"
    export XDG_RUNTIME_DIR
    ! systemctl --user show-environment >/dev/null 2>&1 || say systemd yes
    [ ! -e "/var/lib/systemd/linger/$(id -un)" ] || say linger yes
}
in_folder
say folder "$folder"
find_worker
if [ "$thorough" = yes ]; then
    find_system
    find_driver
    find_parts
    find_torch
fi
say end yes
