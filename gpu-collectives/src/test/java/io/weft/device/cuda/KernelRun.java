package io.weft.device.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.device.ChildProcess;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

/**
 * Launches of the kernels in {@code src/main/cuda} on the host, by the program {@code
 * src/test/native/kernel_run.c}, which sanitizers check. Every buffer is an allocation of its own.
 * Not thread-safe.
 */
final class KernelRun {
  private static final Path SOURCE = Path.of("src", "test", "native", "kernel_run.c");
  private static final String COMPILER = System.getenv().getOrDefault("CC", "gcc");
  private static final Duration TIMEOUT = Duration.ofMinutes(2);
  private static final int NAME_BYTES = 32;
  private static final int ARGUMENTS = -1;
  private static final int MAX_ARGUMENT = 4096;

  private final List<byte[]> contents = new ArrayList<>();
  private final List<Long> sizes = new ArrayList<>();
  private final List<Integer> fills = new ArrayList<>();
  private final List<long[]> links = new ArrayList<>();
  private final List<Launch> launches = new ArrayList<>();
  private long argumentBytes;

  /** The program, built once in this process. */
  private static final class Program {
    private static final Path FILE =
        Path.of("target", "kernel-run-" + ProcessHandle.current().pid()).toAbsolutePath();
    private static String sanitizers = "-fsanitize=address,undefined";
    private static final String WHY_NOT = tryBuild();

    private static String tryBuild() {
      String whyNot = compile(List.of(sanitizers, "-fno-sanitize-recover=all"));
      if (!whyNot.isEmpty()) {
        sanitizers = "none, because: " + whyNot;
        whyNot = compile(List.of());
      }
      FILE.toFile().deleteOnExit();
      return whyNot;
    }

    private static String compile(List<String> flags) {
      List<String> command = new ArrayList<>(List.of(COMPILER, "-std=gnu11", "-O1", "-g"));
      command.addAll(List.of("-Wall", "-Wextra", "-Werror"));
      command.addAll(flags);
      command.addAll(List.of("-o", FILE.toString(), SOURCE.toString()));
      try {
        ChildProcess.Outcome outcome = ChildProcess.run(command, TIMEOUT);
        return outcome.isWell() ? "" : outcome.toString();
      } catch (IOException e) {
        return COMPILER + " cannot run: " + e.getMessage();
      }
    }
  }

  /** Why kernels cannot run on this host; empty if they can. */
  static String whyNot() {
    return Program.WHY_NOT;
  }

  /** The sanitizers of the program, or why there are none. */
  static String sanitizers() {
    assertThat(whyNot()).isEmpty();
    return Program.sanitizers;
  }

  /** Adds a buffer with these bytes and returns its number. */
  int buffer(byte[] bytes) {
    contents.add(bytes);
    sizes.add((long) bytes.length);
    fills.add(-1);
    return contents.size() - 1;
  }

  /** Adds a buffer with equal bytes and returns its number. */
  int buffer(long bytes, int fill) {
    contents.add(new byte[0]);
    sizes.add(bytes);
    fills.add(fill);
    return contents.size() - 1;
  }

  /** The bytes of a buffer before the first launch, which the caller may still change. */
  byte[] bytes(int buffer) {
    return contents.get(buffer);
  }

  /** Writes the address of a byte of one buffer into another one. */
  void link(int in, long at, int to, long offset) {
    links.add(new long[] {in, at, to, offset});
  }

  /** Adds a launch, whose arguments follow. */
  Launch launch(String kernel, long blocks, int threads) {
    Launch made = new Launch(kernel, blocks, threads);
    launches.add(made);
    return made;
  }

  /** Adds a launch of 256 threads a block, with a thread for each item, as for a GPU. */
  Launch forEach(String kernel, long items) {
    return launch(kernel, Math.max(1, Math.min((items + 255) / 256, 5)), 256);
  }

  /** A launch with its arguments, field by field. */
  final class Launch {
    private final String kernel;
    private final long blocks;
    private final int threads;
    private final ByteBuffer argument =
        ByteBuffer.allocate(MAX_ARGUMENT).order(ByteOrder.nativeOrder());

    private Launch(String kernel, long blocks, int threads) {
      this.kernel = kernel;
      this.blocks = blocks;
      this.threads = threads;
    }

    Launch longs(long... values) {
      for (long value : values) {
        argument.putLong(value);
      }
      return this;
    }

    Launch ints(int... values) {
      for (int value : values) {
        argument.putInt(value);
      }
      return this;
    }

    /** Adds the address of a buffer; null for a buffer below 0. */
    Launch address(int buffer) {
      return buffer >= 0 ? address(buffer, 0) : longs(0);
    }

    /** Adds the address of a byte of a buffer. */
    Launch address(int buffer, long offset) {
      link(ARGUMENTS, argumentBytes + argument.position(), buffer, offset);
      return longs(0);
    }

    /** Ends the arguments, which have this size with unused bytes. */
    void end(int bytes) {
      assertThat(argument.position()).isLessThanOrEqualTo(bytes);
      argument.position(bytes).flip();
      argumentBytes += bytes;
    }
  }

  /** Runs all launches in order; returns the contents of all buffers. */
  List<ByteBuffer> run() {
    assertThat(whyNot()).isEmpty();
    try {
      Path input = Files.createTempFile("weft-kernels", ".in");
      Path output = Files.createTempFile("weft-kernels", ".out");
      try {
        Files.write(input, encoded());
        List<String> command =
            List.of(Program.FILE.toString(), input.toString(), output.toString());
        ChildProcess.Outcome outcome = ChildProcess.run(command, TIMEOUT);
        assertThat(outcome.isWell()).as(() -> "" + outcome).isTrue();
        return decoded(Files.readAllBytes(output));
      } finally {
        Files.delete(input);
        Files.delete(output);
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private List<ByteBuffer> decoded(byte[] bytes) {
    List<ByteBuffer> buffers = new ArrayList<>();
    ByteBuffer in = ByteBuffer.wrap(bytes);
    for (long size : sizes) {
      int length = Math.toIntExact(size);
      buffers.add(in.slice(in.position(), length).order(ByteOrder.nativeOrder()));
      in.position(in.position() + length);
    }
    assertThat(in.hasRemaining()).isFalse();
    return buffers;
  }

  private byte[] encoded() throws IOException {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    words(out, contents.size());
    for (int i = 0; i < contents.size(); i++) {
      words(out, sizes.get(i), fills.get(i));
      padded(out, contents.get(i));
    }
    words(out, links.size());
    for (long[] link : links) {
      words(out, link);
    }
    words(out, launches.size());
    for (Launch launch : launches) {
      byte[] name = launch.kernel.getBytes(StandardCharsets.US_ASCII);
      out.write(ByteBuffer.allocate(NAME_BYTES).put(name).array());
      byte[] argument = new byte[launch.argument.limit()];
      launch.argument.get(0, argument);
      words(out, launch.blocks, launch.threads, argument.length);
      padded(out, argument);
    }
    return out.toByteArray();
  }

  private static void words(ByteArrayOutputStream out, long... words) throws IOException {
    ByteBuffer bytes = ByteBuffer.allocate(words.length * 8).order(ByteOrder.nativeOrder());
    for (long word : words) {
      bytes.putLong(word);
    }
    out.write(bytes.array());
  }

  private static void padded(ByteArrayOutputStream out, byte[] bytes) throws IOException {
    out.write(bytes);
    out.write(new byte[-bytes.length & 7]);
  }
}
