package io.weft.device.cuda;

import io.weft.device.DoubleLibraries;
import io.weft.testgpus.DeviceBytes;
import io.weft.testgpus.TestMachine;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.HexFormat;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;

/** A process that exports device memory and follows commands, which are lines of text. */
final class ExportingProcess implements AutoCloseable {
  static final int BYTES = 10_000;
  private static final int TIMEOUT_SECONDS = 120;

  private final Process process;
  private final BufferedReader out;
  private final PrintStream in;

  ExportingProcess() throws IOException {
    process =
        new ProcessBuilder(
                List.of(
                    Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                    "-Xmx64m",
                    "-XX:+UseSerialGC",
                    "-XX:TieredStopAtLevel=1",
                    TestMachine.property(),
                    "-cp",
                    System.getProperty(
                        "surefire.test.class.path", System.getProperty("java.class.path")),
                    ExportingProcess.class.getName()))
            .redirectError(ProcessBuilder.Redirect.DISCARD)
            .start();
    out = process.inputReader(StandardCharsets.UTF_8);
    in = new PrintStream(process.getOutputStream(), true, StandardCharsets.UTF_8);
  }

  /** The answer to a command; the first answer, without a command, is its handle. */
  String ask(String order) throws Exception {
    if (!order.isEmpty()) {
      in.println(order);
    }
    return CompletableFuture.supplyAsync(this::read).get(TIMEOUT_SECONDS, TimeUnit.SECONDS);
  }

  private String read() {
    try {
      String line = out.readLine();
      while (line != null && !line.startsWith("= ")) {
        line = out.readLine();
      }
      return line == null ? "its process has ended" : line.substring(2);
    } catch (IOException e) {
      return e.toString();
    }
  }

  void kill() throws InterruptedException {
    process.destroyForcibly().waitFor(TIMEOUT_SECONDS, TimeUnit.SECONDS);
  }

  @Override
  public void close() {
    process.destroyForcibly();
  }

  /** Exports the second of two pieces, whose bytes are 7. */
  public static void main(String[] args) throws Exception {
    CudaDevice device = TestMachine.open(0);
    CudaMemoryPool pool = CudaMemoryPool.open(device, CudaMemoryPool.Kind.DEVICE, 1 << 20);
    CudaMemory first = pool.take(BYTES);
    CudaMemory second = pool.take(BYTES);
    DeviceBytes.fill(device, second.address(), BYTES, (byte) 7);
    IpcExport export = IpcExport.of(second);
    say(HexFormat.of().formatHex(export.handle().encode()));
    long address = second.address();
    second.close();
    BufferedReader orders =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String order = orders.readLine(); order != null; order = orders.readLine()) {
      switch (order) {
        case "look" -> {
          byte last = DeviceBytes.get(device, address + BYTES - 1);
          say(DeviceBytes.get(device, address) + " " + last);
        }
        case "taken" -> say(Long.toString(pool.takenBytes()));
        case "end" -> {
          export.close();
          first.close();
          pool.close();
          device.close();
          say(DoubleLibraries.violations() + DoubleLibraries.live() + ".");
        }
        default -> throw new IOException(order);
      }
    }
    System.exit(0);
  }

  private static void say(String text) {
    System.out.println("= " + text.replace('\n', ' '));
  }
}
