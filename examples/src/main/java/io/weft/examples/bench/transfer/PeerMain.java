package io.weft.examples.bench.transfer;

import io.weft.examples.measure.ProcessorTime;
import io.weft.exchange.ExecutorExchange;
import io.weft.peer.PeerAddress;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.HdrHistogram.Histogram;

/**
 * An executor that follows orders from standard input, a line each, until it ends. It says {@code
 * ready ADDRESS PORT}, the port being that of its {@link PlainServer}; then {@code done} and what
 * is asked for, or {@code failed} and why.
 *
 * <ul>
 *   <li>{@code know ADDRESS}: of another executor
 *   <li>{@code write BLOCKS}
 *   <li>{@code together OWNER BLOCKS}, {@code one-by-one OWNER BLOCKS}: says nanoseconds
 *   <li>{@code again OWNER TIMES BLOCKS}: says a histogram of single reads
 *   <li>{@code plain PORT BYTES}, {@code plain-again PORT TIMES BYTES}: the same by sockets
 *   <li>{@code plain-memory PORT BYTES}: from memory to memory as large as the blocks
 *   <li>{@code cpu}: says the nanoseconds that this process has used processors
 * </ul>
 */
public final class PeerMain {
  private final Map<String, PeerAddress> known;
  private final ExecutorExchange exchange;
  private final ByteBuffer buffer = ByteBuffer.allocateDirect(PlainServer.BUFFER_BYTES);
  private ByteBuffer memory;

  private PeerMain(Map<String, PeerAddress> known, ExecutorExchange exchange) {
    this.known = known;
    this.exchange = exchange;
  }

  /** Arguments are those of {@link PeerOptions#arguments}. */
  public static void main(String[] arguments) throws IOException {
    Map<String, PeerAddress> known = new ConcurrentHashMap<>();
    try (ExecutorExchange exchange =
            ExecutorExchange.open(PeerOptions.parse(arguments).exchange(), id -> find(known, id));
        PlainServer plain = PlainServer.start()) {
      System.out.println("ready " + PeerOptions.encode(exchange.address()) + " " + plain.port());
      new PeerMain(known, exchange).follow();
    }
  }

  private static PeerAddress find(Map<String, PeerAddress> known, String id) throws IOException {
    PeerAddress address = known.get(id);
    if (address == null) {
      throw new IOException("nobody has told of executor " + id);
    }
    return address;
  }

  private void follow() throws IOException {
    BufferedReader orders =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = orders.readLine(); line != null; line = orders.readLine()) {
      try {
        System.out.println(("done " + obey(line.split(" ", -1))).trim());
      } catch (IOException | RuntimeException e) {
        e.printStackTrace();
        System.out.println("failed " + e);
        return;
      }
    }
  }

  private Object obey(String[] words) throws IOException {
    return switch (words[0]) {
      case "know" -> know(PeerOptions.decode(words[1]));
      case "write" -> write(PeerBlocks.parse(words, 1));
      case "together" -> PeerBlocks.parse(words, 2).readTogether(exchange, words[1]);
      case "one-by-one" -> PeerBlocks.parse(words, 2).readOneByOne(exchange, words[1]);
      case "again" -> again(words[1], Integer.parseInt(words[2]), PeerBlocks.parse(words, 3));
      case "plain" -> plain(buffer, Integer.parseInt(words[1]), Long.parseLong(words[2]));
      case "plain-memory" -> plain(memory(), Integer.parseInt(words[1]), Long.parseLong(words[2]));
      case "plain-again" ->
          plainAgain(
              Integer.parseInt(words[1]), Integer.parseInt(words[2]), Long.parseLong(words[3]));
      case "cpu" -> ProcessorTime.nanos();
      default -> throw new IllegalArgumentException("no order " + words[0]);
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

  /** Kept, so that its pages are there when it counts. */
  private ByteBuffer memory() {
    if (memory == null) {
      memory = ByteBuffer.allocateDirect(PlainServer.MEMORY_BYTES);
    }
    return memory;
  }

  private static long plain(ByteBuffer content, int port, long bytes) throws IOException {
    try (PlainClient client = new PlainClient(port, content)) {
      return client.read(bytes);
    }
  }

  private String plainAgain(int port, int times, long bytes) throws IOException {
    try (PlainClient client = new PlainClient(port, buffer)) {
      Histogram histogram = Histograms.create();
      client.readAgain(bytes, times, histogram);
      return Histograms.encode(histogram);
    }
  }
}
