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

g=$here/test/golden
unet="--net unet --set widths=8,12,16 --set groups=4 --set time_dim=16"
mlp="--net mlp --set hidden=32 --set time-dim=16"
expect 2 "hone VERB" "$hone"
expect 0 "hone VERB" "$hone" --help
expect 0 "hone 0." "$hone" --version
expect 2 'did you mean "inspect"' "$hone" ispect
expect 0 "matmul: z = x y" "$hone" ops matmul
expect 2 'did you mean "matmul"' "$hone" ops matmull
expect 2 "did you mean --markdown" "$hone" ops --markdwn
expect 0 "| \`group_norm\` |" "$hone" ops --markdown
expect 0 "all is well" "$hone" doctor
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
# shellcheck disable=SC2086
{
    expect 0 "" "$hone" forward $unet --weights "$g/unet.safetensors" --inputs "$g/unet.safetensors" --out "$tmp/y"
    expect 0 "[2,16,3]" "$hone" inspect "$tmp/y"
    expect 0 "" "$hone" forward $mlp --debug --threads=1 --weights "$g/mlp.safetensors" --inputs "$g/mlp.safetensors" --out "$tmp/z"
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
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
