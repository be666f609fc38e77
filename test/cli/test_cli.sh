#!/bin/sh
# The command line: exit codes and messages. test_cli.sh HONE; prints what fails, and `N passed, N failed`.
hone=$1
here=$(cd "$(dirname "$0")/../.." && pwd)
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
passed=0
failed=0

# expect CODE TEXT COMMAND...: the code, and TEXT somewhere in what is printed.
expect() {
    code=$1 text=$2
    shift 2
    "$@" >"$tmp/out" 2>&1
    got=$?
    if [ "$got" = "$code" ] && { [ -z "$text" ] || grep -qF -- "$text" "$tmp/out"; }; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL cli: $*: code $got, wanted $code with \"$text\"; it printed:"
        head -5 "$tmp/out"
    fi
}

# tensors FILE HEADER DATA: a file of tensors; both as printf writes them.
tensors() {
    printf '%b' "$2" >"$tmp/header"
    n=$(wc -c <"$tmp/header")
    : >"$1"
    for i in 1 2 3 4 5 6 7 8; do
        printf "\\$(printf %03o $((n % 256)))" >>"$1"
        n=$((n / 256))
    done
    cat "$tmp/header" >>"$1"
    printf '%b' "$3" >>"$1"
}

g=$here/test/golden
unet="--net unet --set widths=8,12,16 --set groups=4 --set time_dim=16"
mlp="--net mlp --set hidden=32 --set time-dim=16"
dit="--net dit --set width=16 --set layers=2 --set heads=2 --set mlp-ratio=2 --set time-dim=8 --set time-hidden=12"
expect 2 "hone VERB" "$hone"
expect 0 "hone VERB" "$hone" --help
expect 0 "hone 0." "$hone" --version
expect 2 'did you mean "inspect"' "$hone" ispect
expect 0 "matmul: z = x y" "$hone" ops matmul
expect 0 "hone_t hone_group_norm(hone_t x" "$hone" ops group-norm
expect 0 "record      kernel; kernels take" "$hone" ops add
expect 2 "one word too many" "$hone" ops add mul
expect 2 "takes no value" "$hone" ops --markdown=yes
expect 2 "did you mean --weights" "$hone" forward --wieghts x
expect 2 "--net wants NAME" "$hone" forward --net
expect 2 'did you mean "matmul"' "$hone" ops matmull
expect 2 "did you mean --markdown" "$hone" ops --markdwn
expect 0 "| \`group_norm\` |" "$hone" ops --markdown
expect 0 "all is well" "$hone" doctor
expect 0 "  product    of matrices: largest error" "$hone" doctor
expect 0 "  device     record: " "$hone" doctor
expect 2 "one word too many" "$hone" doctor now
expect 0 "tensors," "$hone" inspect "$g/mlp.safetensors"
expect 2 "usage" "$hone" inspect
expect 1 "nosuch" "$hone" inspect "$tmp/nosuch"
expect 1 "format allows" "$hone" inspect "$here/README.md"
head -c 5000 "$g/mlp.safetensors" >"$tmp/cut"
expect 1 "cut" "$hone" inspect "$tmp/cut"
: >"$tmp/empty"
expect 1 "empty" "$hone" inspect "$tmp/empty"
expect 1 "$tmp" "$hone" inspect "$tmp"
expect 0 "# network = mlp" "$hone" inspect "$g/mlp.safetensors"
expect 0 "param/input/weight                               F32      [32,38]              4864" "$hone" inspect "$g/mlp.safetensors"
# files that are not what they claim
printf 'abc' >"$tmp/short"
expect 1 "short: " "$hone" inspect "$tmp/short"
printf '\377\377\377\377\377\377\377\177{}' >"$tmp/long_header"
expect 1 "long_header: " "$hone" inspect "$tmp/long_header"
tensors "$tmp/no_json" '{"a":' ''
expect 1 "no_json: " "$hone" inspect "$tmp/no_json"
tensors "$tmp/hole" '{"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}' '12345678'
expect 1 "hole: " "$hone" inspect "$tmp/hole"
tensors "$tmp/twice" '{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}' '12'
expect 1 "twice: " "$hone" inspect "$tmp/twice"
tensors "$tmp/huge" '{"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,4]}}' '1234'
expect 1 "huge: " "$hone" inspect "$tmp/huge"
tensors "$tmp/more" '{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}' '12'
expect 1 "more: " "$hone" inspect "$tmp/more"
tensors "$tmp/rank9" '{"a":{"dtype":"U8","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,1]}}' '1'
expect 0 "(9 dimensions)" "$hone" inspect "$tmp/rank9"
tensors "$tmp/f8" '{"a":{"dtype":"F8_E4M3","shape":[2],"data_offsets":[0,2]}}' '12'
expect 0 "F8_E4M3  [2]                  2" "$hone" inspect "$tmp/f8"
tensors "$tmp/nothing" '{}' ''
expect 0 "0 tensors, 0 elements, 0 bytes" "$hone" inspect "$tmp/nothing"
# what a file holds does not command the terminal, and does not break lines
tensors "$tmp/control" '{"__metadata__":{"k":"\\u001b[31mred\\nline"},"\\u001b]0;\\u009bx\\u0007":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}' '1'
expect 0 '# k = \x1b[31mred\x0aline' "$hone" inspect "$tmp/control"
expect 0 '\x1b]0;\x9bx\x07 ' "$hone" inspect "$tmp/control"
expect 0 "1 tensor, 1 elements, 1 bytes" "$hone" inspect "$tmp/control"
# shellcheck disable=SC2086
{
    expect 0 "" "$hone" forward $unet --weights "$g/unet.safetensors" --inputs "$g/unet.safetensors" --out "$tmp/y"
    expect 0 "[2,16,3]" "$hone" inspect "$tmp/y"
    expect 0 "" "$hone" forward $mlp --debug --threads=1 --weights "$g/mlp.safetensors" --inputs "$g/mlp.safetensors" --out "$tmp/z"
    mlp_files="--weights $g/mlp.safetensors --inputs $g/mlp.safetensors"
    unet_files="--weights $g/unet.safetensors --inputs $g/unet.safetensors"
    expect 0 "y is out/y up to" "$hone" forward $mlp $mlp_files --out "$tmp/y" --expect out/y
    expect 0 "y is out/y up to" "$hone" forward $unet $unet_files --out "$tmp/y" --expect out/y
    expect 0 "y is out/y up to" "$hone" forward $dit --weights "$g/dit.safetensors" --inputs "$g/dit.safetensors" --out "$tmp/y" --expect out/y
    expect 1 "in/target: y differs from it by up to" "$hone" forward $mlp $mlp_files --out "$tmp/y" --expect in/target
    expect 1 "out/loss: has shape [1]; y has [3,4,3]" "$hone" forward $mlp $mlp_files --out "$tmp/y" --expect out/loss
    expect 1 'out/z' "$hone" forward $mlp $mlp_files --out "$tmp/y" --expect out/z
    expect 0 "aclnnAddmm: time/linear0 linear" "$hone" forward $mlp $mlp_files --out "$tmp/y" --expect out/y --device record
    expect 2 'no device "cqu"' "$hone" forward $mlp $mlp_files --out "$tmp/y" --device cqu
    expect 0 "block0/linear0/weight            [32,32]" "$hone" forward $mlp --help
    expect 0 "cond [B,7]:" "$hone" forward $mlp --set cond=7 --help
    expect 2 'did you mean "hidden"' "$hone" forward --net mlp --set hiden=7 --help
    expect 2 "hidden" "$hone" forward --net mlp --set hidden=many $mlp_files --out "$tmp/y"
    expect 2 "widths" "$hone" forward --net unet --set widths=8,x $unet_files --out "$tmp/y"
    expect 1 "block1/linear0/" "$hone" forward $mlp --set blocks=2 $mlp_files --out "$tmp/y"
    expect 1 '"x"' "$hone" forward $mlp --weights "$g/mlp.safetensors" --inputs "$tmp/nothing" --out "$tmp/y"
    # timesteps of 64 bits; an input of another shape
    tensors "$tmp/i64" '{"t":{"dtype":"I64","shape":[1],"data_offsets":[0,8]},"x":{"dtype":"F32","shape":[1,1,1],"data_offsets":[8,12]},"cond":{"dtype":"F32","shape":[1,1],"data_offsets":[12,16]}}' '\0377\0377\0377\0377\0377\0377\0377\017712341234'
    expect 1 "t: element 0 is 9223372036854775807, which is no i32" "$hone" forward $mlp --weights "$g/mlp.safetensors" --inputs "$tmp/i64" --out "$tmp/y"
    tensors "$tmp/flat" '{"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"t":{"dtype":"I32","shape":[1],"data_offsets":[8,12]}}' '123456789012'
    expect 1 "wants x f32[batch, horizon, actions]" "$hone" forward $mlp --weights "$g/mlp.safetensors" --inputs "$tmp/flat" --out "$tmp/y"
    expect 2 "usage" "$hone" forward $mlp
    expect 2 'did you mean "unet"' "$hone" forward --net unett --weights a --inputs b --out c
    expect 2 'did you mean "widths"' "$hone" forward --net unet --set width=3 --weights a --inputs b --out c
    expect 2 "KEY=VALUE" "$hone" forward --net unet --set width --weights a --inputs b --out c
    expect 2 "--threads wants" "$hone" forward $mlp --threads 0 --weights a --inputs b --out c
    expect 1 "wants [512,128]; the file holds [64,16]" "$hone" forward --net unet --weights "$g/unet.safetensors" --inputs "$g/unet.safetensors" --out "$tmp/q"
    expect 1 "stands in the file and not in the network" "$hone" forward $mlp --set blocks=0 --weights "$g/mlp.safetensors" --inputs "$g/mlp.safetensors" --out "$tmp/q"
    expect 1 "nosuch" "$hone" forward $mlp --weights "$tmp/nosuch" --inputs "$g/mlp.safetensors" --out "$tmp/q"
    expect 1 "$tmp/no/q" "$hone" forward $mlp --weights "$g/mlp.safetensors" --inputs "$g/mlp.safetensors" --out "$tmp/no/q"
}
expect 0 "unet: 1-D U-Net" "$hone" forward --help
# the page of the documentation is that of a build with oneDNN
if ! "$hone" doctor | grep -q "oneDNN *absent"; then
    "$hone" ops --markdown >"$tmp/ops.md"
    expect 0 "" cmp "$tmp/ops.md" "$here/docs/ops.md"
fi
if [ -w /dev/full ]; then
    "$hone" ops >/dev/full 2>"$tmp/full"
    expect 0 "could not be written" cat "$tmp/full"
fi
# times of decisions and training steps: what is printed, not how long it takes
bench="$hone bench"
# shellcheck disable=SC2086
{
    expect 2 "decision, step, ops" $bench decisions
    expect 2 "usage" $bench
    expect 2 "unet, mlp, dit" $bench decision --net lstm
    expect 2 "wants f32 or bf16" $bench decision --weights f16
    expect 2 "a training step has none" $bench step --steps 3
    expect 2 "a training step has f32" $bench step --weights bf16
    expect 2 "--plain packs none" $bench decision --plain --weights bf16
    expect 2 "--batch wants" $bench step --batch 0
    expect 2 "did you mean --repeats" $bench step --repeat 3
    expect 1 "nosuch/t.json: cannot be written" $bench decision --net mlp --repeats 1 --force --profile "$tmp/nosuch/t.json"
    expect 0 '{"bench": "decision", "net": "mlp", "batch": 1,' $bench decision --net mlp --repeats 3 --force --json
    cp "$tmp/out" "$tmp/out.json"
    for key in net batch threads steps weights ms_p50 ms_p99 ms_min floor_ms ratio gflops peak_gflops read_gbs planned_bytes \
        live_peak_bytes arena_bytes allocations process_allocations params cpu load; do
        expect 0 "" grep -F "\"$key\": " "$tmp/out.json"
    done
    expect 0 '"allocations": 0,' cat "$tmp/out.json"
    expect 0 '"params": 1606204,' cat "$tmp/out.json"
    expect 0 '"repeats": 3,' cat "$tmp/out.json"
    expect 0 "adamw_average" $bench step --net mlp --batch 8 --repeats 2 --threads 1 --force --profile "$tmp/t.json"
    expect 0 '"name":"adamw_average","cat":"run","args":{"layer":"adamw"' cat "$tmp/t.json"
    expect 0 "linear f32[8,512] f32[512,512] f32[512]" $bench ops --plain --net mlp --batch 8 --repeats 2 --force
    if command -v python3 >/dev/null; then
        expect 0 "" python3 -c "import json, sys; [json.load(open(f)) for f in sys.argv[1:]]" "$tmp/out.json" "$tmp/t.json"
    fi
}
# a machine in use is refused
if [ -r /proc/stat ]; then
    busy=
    for i in $(seq "$(nproc)"); do
        (while :; do :; done) &
        busy="$busy $!"
    done
    expect 1 "other processes use" "$hone" bench decision --repeats 1
    # shellcheck disable=SC2086
    kill $busy
fi
# every objective learns the four modes: shares 25 +- 2 %, 95 % within 3 standard deviations, or exit 1
expect 0 "report:" "$hone" demo density --seed 1 --out "$tmp/demo"
expect 0 "<td>v<td>" cat "$tmp/demo/report.html"
expect 1 "missed" "$hone" demo density --steps 20 --out "$tmp/demo"
expect 2 "there is no demo" "$hone" demo densty
expect 2 'did you mean "batch"' "$hone" demo density --set bach=3
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
