package io.weft.examples.bench.collectives;

import io.weft.examples.side.LineProcess;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeUnit;

/** OpenMPI's collectives, in a small C program that is compiled when the benchmark starts. */
final class MpiSide implements CollectiveSide {
  static final String NAME = "OpenMPI";

  private static final String SOURCE = "mpi-collectives.c";
  private static final int COMPILE_SECONDS = 60;

  private final LineProcess launcher;

  private MpiSide(LineProcess launcher) {
    this.launcher = launcher;
  }

  /** Whether OpenMPI and its compiler wrapper are installed. */
  static boolean isInstalled() {
    return List.of("mpicc", "mpirun", "gcc").stream().allMatch(CollectivesBench::isOnPath);
  }

  /** Compiles the program, starts its ranks and waits until they are connected. */
  static MpiSide start(int nranks, Path work, RankPlacement placement)
      throws IOException, InterruptedException {
    Path program = compile(work);
    List<String> command = new ArrayList<>(List.of("mpirun", "-n", Integer.toString(nranks)));
    command.addAll(placement.mpiOptions());
    if (nranks > Runtime.getRuntime().availableProcessors()) {
      command.add("--oversubscribe");
    }
    command.add(program.toString());
    ProcessBuilder builder = new ProcessBuilder(command);
    // Containers often run as root. mpirun refuses that unless both variables are set.
    builder.environment().put("OMPI_ALLOW_RUN_AS_ROOT", "1");
    builder.environment().put("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    MpiSide side = new MpiSide(new LineProcess("openmpi", builder, work.resolve("openmpi.log")));
    try {
      String[] unused = side.launcher.answer();
      return side;
    } catch (IOException | InterruptedException | RuntimeException e) {
      side.close();
      throw e;
    }
  }

  private static Path compile(Path work) throws IOException, InterruptedException {
    Path source = work.resolve(SOURCE);
    try (InputStream text = MpiSide.class.getResourceAsStream(SOURCE)) {
      Files.copy(text, source);
    }
    Path program = work.resolve("mpi-collectives");
    Path log = work.resolve("mpicc.log");
    Process compiler =
        new ProcessBuilder("mpicc", "-O2", "-o", program.toString(), source.toString())
            .redirectErrorStream(true)
            .redirectOutput(log.toFile())
            .start();
    if (!compiler.waitFor(COMPILE_SECONDS, TimeUnit.SECONDS) || compiler.exitValue() != 0) {
      compiler.destroyForcibly();
      throw new IOException("mpicc failed on " + SOURCE + ":\n" + Files.readString(log));
    }
    return program;
  }

  @Override
  public String name() {
    return NAME;
  }

  @Override
  public Optional<CollectiveSide.Timing> run(CollectiveCase test, boolean check, int iterations)
      throws IOException, InterruptedException {
    launcher.order(test.order(check, iterations));
    String[] answer = launcher.answer();
    return answer[0].equals("done")
        ? Optional.of(
            new CollectiveSide.Timing(
                Long.parseLong(answer[1]),
                Long.parseLong(answer[2]),
                Long.parseLong(answer[3]),
                ""))
        : Optional.empty();
  }

  @Override
  public void close() {
    launcher.close();
  }
}
