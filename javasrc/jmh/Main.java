package jmh;

import java.io.OutputStream;
import java.io.PrintStream;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.results.BenchmarkResult;
import org.openjdk.jmh.results.IterationResult;
import org.openjdk.jmh.results.RunResult;
import org.openjdk.jmh.runner.Runner;
import org.openjdk.jmh.runner.format.OutputFormatFactory;
import org.openjdk.jmh.runner.options.Options;
import org.openjdk.jmh.runner.options.OptionsBuilder;
import org.openjdk.jmh.runner.options.TimeValue;
import org.openjdk.jmh.runner.options.VerboseMode;

/**
 * Runs one benchmark of {@link CreateAndDestroy} with JMH, in a JVM of its own, and prints the result
 * as a line in the Go benchmark format.
 *
 * <p>It belongs to claim L5. Arguments: the benchmark, and the number of operations, which is ignored
 * because JMH chooses it. JMH is told to run no warm-up iterations. Each iteration is reported as a
 * lap, so that the line shows the warm-up; ns/op is the mean over the second half of the laps.
 */
public final class Main {
  private static final int LAPS = 10;
  private static final TimeValue LAP = TimeValue.milliseconds(100);

  private Main() {}

  public static void main(String[] arguments) throws Exception {
    String benchmark = arguments[0];
    String method = benchmark.substring(0, 1).toLowerCase() + benchmark.substring(1);
    Options options =
        new OptionsBuilder()
            .include("^" + CreateAndDestroy.class.getName() + "\\." + method + "$")
            .mode(Mode.AverageTime)
            .timeUnit(TimeUnit.NANOSECONDS)
            .forks(1)
            .threads(1)
            .warmupIterations(0)
            .measurementIterations(LAPS)
            .measurementTime(LAP)
            .build();
    PrintStream nowhere = new PrintStream(OutputStream.nullOutputStream());
    Collection<RunResult> results =
        new Runner(options, OutputFormatFactory.createFormatInstance(nowhere, VerboseMode.SILENT))
            .run();
    List<Double> laps = new ArrayList<>();
    long operations = 0;
    double warmTime = 0;
    long warmOperations = 0;
    for (RunResult result : results) {
      for (BenchmarkResult run : result.getBenchmarkResults()) {
        operations += run.getMetadata().getMeasurementOps();
        for (IterationResult lap : run.getIterationResults()) {
          double each = lap.getPrimaryResult().getScore();
          laps.add(each);
          if (laps.size() > LAPS / 2) {
            long done = lap.getMetadata().getMeasuredOps();
            warmTime += each * done;
            warmOperations += done;
          }
        }
      }
    }
    print(benchmark, operations, warmTime / warmOperations, laps);
  }

  private static void print(String benchmark, long operations, double warm, List<Double> laps) {
    StringBuilder line = new StringBuilder("Benchmark").append(benchmark);
    int processors = Runtime.getRuntime().availableProcessors();
    if (processors > 1) {
      line.append('-').append(processors);
    }
    line.append('\t').append(operations).append('\t').append(warm).append(" ns/op");
    for (int i = 0; i < laps.size(); i++) {
      line.append(String.format("\t%s lap%02d-ns/op", laps.get(i), i + 1));
    }
    System.out.println(line);
  }
}
