package io.weft.compat;

import static org.apache.spark.sql.functions.col;

import java.io.IOException;
import java.net.ServerSocket;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Stream;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.LocatedFileStatus;
import org.apache.hadoop.fs.RemoteIterator;
import org.apache.hadoop.hdfs.MiniDFSCluster;
import org.apache.spark.MapOutputTrackerMaster;
import org.apache.spark.SparkEnv;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerTaskEnd;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import scala.jdk.javaapi.CollectionConverters;

/** Programs with Hadoop's own file system, of one node in this process. */
final class HdfsPrograms {
  private static final int MAP_TASKS = 8;
  private static final String ROWS =
      "SELECT id, REPEAT(STRING(id), 30) AS s FROM RANGE(0, 50000, 1, " + MAP_TASKS + ")";
  private static final String EXECUTOR = "CoarseGrainedExecutorBackend";
  private static final long LIMIT_NANOS = TimeUnit.MINUTES.toNanos(2);
  private static final long PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(20);
  private static final long EVENTS_MILLIS = 60_000;

  private HdfsPrograms() {}

  static List<Program> all() throws IOException {
    int port;
    try (ServerSocket free = new ServerSocket(0)) {
      port = free.getLocalPort();
    }
    String path = "hdfs://127.0.0.1:" + port + "/copies";
    return List.of(
        Program.of(
            "Copies on HDFS, read after all executors were killed",
            Map.of("spark.weft.survive.path", path),
            (session, folder) -> killed(session, folder, port)));
  }

  private static List<String> killed(SparkSession session, Path folder, int port) throws Exception {
    boolean weft = session.sparkContext().conf().contains("spark.plugins");
    MiniDFSCluster hdfs =
        new MiniDFSCluster.Builder(new Configuration(), folder.resolve("hdfs").toFile())
            .nameNodePort(port)
            .numDataNodes(1)
            .build();
    try {
      hdfs.waitActive();
      FileSystem files = hdfs.getFileSystem();
      await("the folder of the driver", () -> !weft || files(files) == 1);
      JavaRDD<Row> rows = session.sql(ROWS).repartition(5, col("id")).javaRDD();
      List<String> first = sorted(rows);
      await("copies of all map outputs", () -> !weft || files(files) == 1 + MAP_TASKS);
      executors().forEach(ProcessHandle::destroyForcibly);
      await("the places of the copies", () -> !weft || copies() == MAP_TASKS);
      AtomicInteger mapTasks = new AtomicInteger();
      session.sparkContext().addSparkListener(new MapTasks(mapTasks));
      List<String> second = sorted(rows);
      session.sparkContext().listenerBus().waitUntilEmpty(EVENTS_MILLIS);
      if (!second.equals(first) || (weft && mapTasks.get() > 0)) {
        throw new IllegalStateException(
            "%d rows, then %d; %d map tasks ran again"
                .formatted(first.size(), second.size(), mapTasks.get()));
      }
      // The new executors publish map outputs too.
      return sorted(session.sql(ROWS).repartition(5, col("id")).javaRDD());
    } finally {
      hdfs.shutdown();
    }
  }

  private static void await(String what, Callable<Boolean> done) throws Exception {
    long deadline = System.nanoTime() + LIMIT_NANOS;
    while (!done.call()) {
      if (System.nanoTime() - deadline > 0) {
        throw new IllegalStateException("not in time: " + what);
      }
      LockSupport.parkNanos(PAUSE_NANOS);
    }
  }

  private static int files(FileSystem files) throws IOException {
    org.apache.hadoop.fs.Path copies = new org.apache.hadoop.fs.Path("/copies");
    if (!files.exists(copies)) {
      return 0;
    }
    int count = 0;
    RemoteIterator<LocatedFileStatus> all = files.listFiles(copies, true);
    while (all.hasNext()) {
      count += all.next().getLen() > 0 ? 1 : 0;
    }
    return count;
  }

  /** The map outputs of the last shuffle that Spark's tracker has at the place of copies. */
  private static long copies() {
    MapOutputTrackerMaster tracker = (MapOutputTrackerMaster) SparkEnv.get().mapOutputTracker();
    int last =
        CollectionConverters.asJava(tracker.shuffleStatuses().keys().toSeq()).stream()
            .mapToInt(shuffle -> (Integer) shuffle)
            .max()
            .orElseThrow();
    return Stream.of(tracker.shuffleStatuses().apply(last).mapStatuses())
        .filter(status -> status != null && status.location().executorId().equals("fallback"))
        .count();
  }

  private static List<ProcessHandle> executors() {
    return ProcessHandle.current()
        .descendants()
        .filter(process -> process.info().commandLine().orElse("").contains(EXECUTOR))
        .toList();
  }

  private static List<String> sorted(JavaRDD<Row> rows) {
    return rows.map(row -> row.mkString(",")).collect().stream().sorted().toList();
  }

  /** Counts map tasks. */
  private static final class MapTasks extends SparkListener {
    private final AtomicInteger count;

    MapTasks(AtomicInteger count) {
      this.count = count;
    }

    @Override
    public void onTaskEnd(SparkListenerTaskEnd end) {
      if (end.taskType().equals("ShuffleMapTask")) {
        count.incrementAndGet();
      }
    }
  }
}
