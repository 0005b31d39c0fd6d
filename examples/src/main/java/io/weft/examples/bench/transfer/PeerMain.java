package io.weft.examples.bench.transfer;

import io.weft.examples.measure.ProcessorTime;
import io.weft.shuffle.ExecutorExchange;
import io.weft.shuffle.peer.PeerAddress;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.HdrHistogram.Histogram;

/**
 * The main class of an executor. It executes orders from standard input, a line each, until its
 * input ends. First it writes {@code ready ADDRESS HOST:PORT}, the second of its {@link
 * PlainSockets}. An answer is {@code done} with a result, or {@code failed} with a reason.
 *
 * <ul>
 *   <li>{@code know ADDRESS}: adds the address of another executor
 *   <li>{@code write BLOCKS}: writes blocks
 *   <li>{@code together OWNER BLOCKS}, {@code one-by-one OWNER BLOCKS}: reads blocks and returns
 *       nanoseconds
 *   <li>{@code again OWNER TIMES BLOCKS}: returns a histogram of single reads
 *   <li>{@code plain HOST:PORT BYTES}, {@code plain-again HOST:PORT TIMES BYTES}: the same through
 *       sockets
 *   <li>{@code plain-memory HOST:PORT BYTES}: copies between memory areas as large as the blocks
 *   <li>{@code cpu}: returns the CPU time of this process in nanoseconds
 * </ul>
 */
public final class PeerMain {
  private final Map<String, PeerAddress> known;
  private final ExecutorExchange exchange;
  private final ByteBuffer buffer = ByteBuffer.allocateDirect(PlainSockets.BUFFER_BYTES);
  private ByteBuffer memory;

  private PeerMain(Map<String, PeerAddress> known, ExecutorExchange exchange) {
    this.known = known;
    this.exchange = exchange;
  }

  /** Takes the arguments of {@link PeerOptions#arguments}. */
  public static void main(String[] arguments) throws IOException {
    PeerOptions options = PeerOptions.parse(arguments);
    Map<String, PeerAddress> known = new ConcurrentHashMap<>();
    try (ExecutorExchange exchange = ExecutorExchange.open(options.exchange(), ids -> known);
        PlainSockets plain = PlainSockets.start(options.address())) {
      System.out.println(
          "ready "
              + PeerOptions.encode(exchange.address())
              + " "
              + options.address()
              + ":"
              + plain.port());
      new PeerMain(known, exchange).follow();
    }
  }

  private void follow() throws IOException {
    BufferedReader orders =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = orders.readLine(); line != null; line = orders.readLine()) {
      try {
        System.out.println(("done " + execute(line.split(" ", -1))).trim());
      } catch (IOException | RuntimeException e) {
        e.printStackTrace();
        System.out.println("failed " + e);
        return;
      }
    }
  }

  private Object execute(String[] words) throws IOException {
    return switch (words[0]) {
      case "know" -> know(PeerOptions.decode(words[1]));
      case "write" -> write(PeerBlocks.parse(words, 1));
      case "together" -> PeerBlocks.parse(words, 2).readTogether(exchange, words[1]);
      case "one-by-one" -> PeerBlocks.parse(words, 2).readOneByOne(exchange, words[1]);
      case "again" -> again(words[1], Integer.parseInt(words[2]), PeerBlocks.parse(words, 3));
      case "plain" -> plain(buffer, words[1], Long.parseLong(words[2]));
      case "plain-memory" -> plain(memory(), words[1], Long.parseLong(words[2]));
      case "plain-again" ->
          plainAgain(words[1], Integer.parseInt(words[2]), Long.parseLong(words[3]));
      case "cpu" -> ProcessorTime.nanos();
      default -> throw new IllegalArgumentException("unknown order " + words[0]);
    };
  }

  private String know(PeerAddress address) {
    known.put(address.executorId(), address);
    return "";
  }

  private String write(PeerBlocks blocks) throws IOException {
    blocks.write(exchange);
    return "";
  }

  private String again(String owner, int times, PeerBlocks blocks) throws IOException {
    Histogram histogram = Histograms.create();
    blocks.readAgain(exchange, owner, times, histogram);
    return Histograms.encode(histogram);
  }

  /** Allocates the memory once, so that its pages are touched before a measurement. */
  private ByteBuffer memory() {
    if (memory == null) {
      memory = ByteBuffer.allocateDirect(PlainSockets.MEMORY_BYTES);
    }
    return memory;
  }

  private static InetSocketAddress address(String server) {
    int colon = server.lastIndexOf(':');
    return new InetSocketAddress(
        server.substring(0, colon), Integer.parseInt(server.substring(colon + 1)));
  }

  private static long plain(ByteBuffer content, String server, long bytes) throws IOException {
    try (PlainSockets.Client client = new PlainSockets.Client(address(server), content)) {
      return client.read(bytes);
    }
  }

  private String plainAgain(String server, int times, long bytes) throws IOException {
    try (PlainSockets.Client client = new PlainSockets.Client(address(server), buffer)) {
      Histogram histogram = Histograms.create();
      client.readAgain(bytes, times, histogram);
      return Histograms.encode(histogram);
    }
  }
}
