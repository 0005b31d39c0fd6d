package io.weft.examples.bench.transfer;

import io.weft.shuffle.ExchangeOptions;
import io.weft.shuffle.ExchangeOptions.MemoryOptions;
import io.weft.shuffle.ExchangeOptions.NetworkOptions;
import io.weft.shuffle.ExchangeOptions.TrafficOptions;
import io.weft.shuffle.net.Compression;
import io.weft.shuffle.peer.PeerAddress;
import io.weft.shuffle.peer.TransportMode;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Base64;
import java.util.List;
import java.util.Optional;
import org.apache.spark.SecurityManager;
import org.apache.spark.SparkConf;
import scala.Option;

/**
 * The arguments of an executor's process. All other options have the defaults of Weft's settings.
 *
 * @param memory folder of its shared memory
 * @param local folder of its local files
 * @param executor its id
 * @param mode the transport for reads from other executors
 * @param checksums whether it checks the data that it sends and reads
 * @param compression of the blocks that it reads
 * @param address that it listens at
 */
record PeerOptions(
    Path memory,
    Path local,
    String executor,
    TransportMode mode,
    boolean checksums,
    Compression.Rule compression,
    String address) {
  /** The address of executors on this host. */
  static final String LOOPBACK = "127.0.0.1";

  private static final long MIB = 1L << 20;

  List<String> arguments() {
    return List.of(
        memory.toString(),
        local.toString(),
        executor,
        mode.name(),
        Boolean.toString(checksums),
        compression.name(),
        address);
  }

  static PeerOptions parse(String[] arguments) {
    return new PeerOptions(
        Path.of(arguments[0]),
        Path.of(arguments[1]),
        arguments[2],
        TransportMode.valueOf(arguments[3]),
        Boolean.parseBoolean(arguments[4]),
        Compression.Rule.valueOf(arguments[5]),
        arguments[6]);
  }

  /** The same options for another executor. */
  PeerOptions as(String otherExecutor) {
    return new PeerOptions(memory, local, otherExecutor, mode, checksums, compression, address);
  }

  PeerOptions compressed(Compression.Rule by) {
    return new PeerOptions(memory, local, executor, mode, checksums, by, address);
  }

  PeerOptions at(String otherAddress) {
    return new PeerOptions(memory, local, executor, mode, checksums, compression, otherAddress);
  }

  ExchangeOptions exchange() throws IOException {
    Path locals = Files.createDirectories(local.resolve(executor));
    SparkConf conf = new SparkConf(false);
    return new ExchangeOptions(
        "weft-bench",
        executor,
        "bench",
        new MemoryOptions(
            Optional.of(memory),
            List.of(locals),
            64 * MIB,
            1024 * MIB,
            1024 * MIB,
            32 * MIB,
            Optional.empty(),
            Duration.ofMinutes(1)),
        new NetworkOptions(
            address,
            address,
            0,
            0,
            mode,
            8 * MIB,
            48 * MIB,
            1024 * MIB,
            Duration.ofMinutes(1),
            conf,
            new SecurityManager(conf, Option.empty(), null)),
        new TrafficOptions(checksums, compression, 48 * MIB, 1024 * MIB, 256 * MIB));
  }

  /** Encodes an address as one word. */
  static String encode(PeerAddress address) throws IOException {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (ObjectOutputStream out = new ObjectOutputStream(bytes)) {
      out.writeObject(address);
    }
    return Base64.getEncoder().encodeToString(bytes.toByteArray());
  }

  static PeerAddress decode(String word) throws IOException {
    byte[] bytes = Base64.getDecoder().decode(word);
    try (ObjectInputStream in = new ObjectInputStream(new ByteArrayInputStream(bytes))) {
      return (PeerAddress) in.readObject();
    } catch (ClassNotFoundException e) {
      throw new IOException("cannot decode an address: " + e, e);
    }
  }
}
