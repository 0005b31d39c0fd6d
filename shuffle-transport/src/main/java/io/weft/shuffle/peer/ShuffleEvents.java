package io.weft.shuffle.peer;

import jdk.jfr.Category;
import jdk.jfr.DataAmount;
import jdk.jfr.Description;
import jdk.jfr.Enabled;
import jdk.jfr.Event;
import jdk.jfr.Label;
import jdk.jfr.Name;
import jdk.jfr.Period;
import jdk.jfr.StackTrace;

/**
 * The events of Java Flight Recorder of the shuffle. All are disabled by default. A {@code start}
 * method then returns null and allocates nothing. The caller fills the fields of an event, and
 * calls {@code commit}. An event is for one thread at a time.
 */
public final class ShuffleEvents {
  private static final Write WRITE = new Write();
  private static final Publish PUBLISH = new Publish();
  private static final Spill SPILL = new Spill();
  private static final Read READ = new Read();
  private static final Fetch FETCH = new Fetch();
  private static final Wait WAIT = new Wait();
  private static final Serve SERVE = new Serve();

  private ShuffleEvents() {}

  private static <E extends Event> E begun(E event) {
    event.begin();
    return event;
  }

  /** An event of a shuffle. */
  @Category("Weft")
  @Enabled(false)
  @StackTrace(false)
  public abstract static class ShuffleEvent extends Event {
    @Label("Shuffle")
    @Description("Spark's shuffle id")
    public int shuffleId;
  }

  /** The executor of a recording. Written at the start and end of each chunk of a recording. */
  @Name("weft.Executor")
  @Label("Executor")
  @Description("The executor whose exchange runs in this process")
  @Category("Weft")
  @Enabled(false)
  @StackTrace(false)
  @Period("everyChunk")
  public static final class Executor extends Event {
    @Label("Executor")
    @Description("Spark's executor id")
    public String executor;

    @Label("Host")
    public String host;

    @Label("Block Server")
    @Description("Address at which the executor serves blocks to other hosts")
    public String server;
  }

  /** The output of a map task, from its first use to its publication. */
  @Name("weft.Write")
  @Label("Write")
  @Description("A map output is written, from the creation of its writer until it is published")
  public static final class Write extends ShuffleEvent {
    @Label("Map Id")
    @Description("Spark's task attempt id of the map task")
    public long mapId;

    @Label("Partitions")
    public int partitions;

    @Label("Chunks")
    public int chunks;

    @Label("Bytes")
    @DataAmount
    public long bytes;

    /** Begins the event; null if it is off. */
    public static Write start() {
      return WRITE.isEnabled() ? begun(new Write()) : null;
    }
  }

  /** The publication of a map output. */
  @Name("weft.Publish")
  @Label("Publish")
  @Description("A map output becomes visible to readers")
  public static final class Publish extends ShuffleEvent {
    @Label("Map Id")
    @Description("Spark's task attempt id of the map task")
    public long mapId;

    @Label("Bytes")
    @DataAmount
    public long bytes;

    /** Begins the event; null if it is off. */
    public static Publish start() {
      return PUBLISH.isEnabled() ? begun(new Publish()) : null;
    }
  }

  /** A chunk that is kept on a local disk. */
  @Name("weft.Spill")
  @Label("Spill")
  @Description("A chunk of a map output is kept on disk: its checksum or encryption")
  public static final class Spill extends ShuffleEvent {
    @Label("Map Id")
    @Description("Spark's task attempt id of the map task")
    public long mapId;

    @Label("Partition")
    public int partition;

    @Label("Bytes")
    @DataAmount
    public long bytes;

    /** Begins the event; null if it is off. */
    public static Spill start() {
      return SPILL.isEnabled() ? begun(new Spill()) : null;
    }
  }

  /** Consecutive chunks of one map output that a reader gets. */
  @Name("weft.Read")
  @Label("Read")
  @Description(
      "A reader gets blocks of a map output. The duration is that of the first chunk, with"
          + " waiting, without the work of the task on its rows")
  public static final class Read extends ShuffleEvent {
    @Label("Reader")
    @Description("Number of the reader in this process, from 1")
    public long reader;

    @Label("Map Id")
    @Description("Spark's task attempt id of the map task")
    public long mapId;

    @Label("First Partition")
    public int firstPartition;

    @Label("Last Partition")
    public int lastPartition;

    @Label("Chunks")
    public int chunks;

    @Label("Rows")
    public long rows;

    @Label("Bytes")
    @DataAmount
    public long bytes;

    @Label("Peer")
    @Description("Executor that has the map output")
    public String peer;

    @Label("Path")
    @Description("own: memory of this executor, shm: memory of the same host, tcp: network")
    public String path;

    /** Whether a recording wants any event of readers. */
    public static boolean isReaderTraced() {
      return READ.isEnabled() || FETCH.isEnabled() || WAIT.isEnabled();
    }

    /** Begins the event of a reader that is traced. */
    public static Read start() {
      return begun(new Read());
    }
  }

  /** A request for blocks to a peer, until all its bytes have arrived. */
  @Name("weft.Fetch")
  @Label("Fetch")
  @Description("A request to a peer, until all bytes of its answer have arrived")
  public static final class Fetch extends ShuffleEvent {
    @Label("Reader")
    @Description("Number of the reader in this process, from 1")
    public long reader;

    @Label("Peer")
    @Description("Executor that answers")
    public String peer;

    @Label("Peer Host")
    public String host;

    @Label("Blocks")
    public int blocks;

    @Label("Bytes")
    @DataAmount
    public long bytes;

    @Label("Sent Bytes")
    @Description("Bytes of the answer on the network, after compression")
    @DataAmount
    public long sentBytes;

    @Label("Stream")
    @Description("Id of the answer, the same in the peer's event Serve; empty without an answer")
    public String stream = "";

    @Label("Failure")
    @Description("Why the request failed; empty if it succeeded")
    public String failure = "";

    /** Begins the event of a reader that is traced. */
    public static Fetch start() {
      return begun(new Fetch());
    }
  }

  /** A reader waits for bytes from the network. */
  @Name("weft.Wait")
  @Label("Wait")
  @Description("A reader waits for bytes from other executors")
  public static final class Wait extends ShuffleEvent {
    @Label("Reader")
    @Description("Number of the reader in this process, from 1")
    public long reader;

    @Label("Peer")
    @Description("Executor that has been silent for the longest time; empty if none")
    public String peer = "";

    /** Begins the event of a reader that is traced. */
    public static Wait start() {
      return begun(new Wait());
    }
  }

  /** The answer to a peer's request. */
  @Name("weft.Serve")
  @Label("Serve")
  @Description("A peer's request is answered. Its bytes are sent later")
  public static final class Serve extends ShuffleEvent {
    @Label("Peer")
    @Description("Network address of the executor that asks")
    public String peer;

    @Label("Blocks")
    public int blocks;

    @Label("Bytes")
    @DataAmount
    public long bytes;

    @Label("Sent Bytes")
    @Description("Bytes of the answer on the network, after compression")
    @DataAmount
    public long sentBytes;

    @Label("Stream")
    @Description("Id of the answer, the same in the peer's event Fetch")
    public String stream;

    /** Begins the event; null if it is off. */
    public static Serve start() {
      return SERVE.isEnabled() ? begun(new Serve()) : null;
    }
  }
}
