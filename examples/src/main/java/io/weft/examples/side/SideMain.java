package io.weft.examples.side;

import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.EOFException;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.io.PrintWriter;
import java.io.Serializable;
import java.io.StringWriter;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.apache.spark.SparkConf;
import org.apache.spark.sql.SparkSession;

/**
 * The main class of a side. It reads a map of Spark settings and then tasks from standard input,
 * and writes a reply for each to standard output. It ends when its input ends, even during a task.
 */
public final class SideMain {
  private final ObjectInputStream tasks;
  private final ObjectOutputStream replies;
  private SparkSession session;

  private SideMain() throws IOException {
    replies =
        new ObjectOutputStream(new BufferedOutputStream(new FileOutputStream(FileDescriptor.out)));
    replies.flush();
    // Other output must not mix with the replies.
    System.setOut(System.err);
    tasks = new ObjectInputStream(new BufferedInputStream(System.in));
  }

  /** Takes no arguments. */
  public static void main(String[] args) throws Exception {
    new SideMain().serve();
  }

  private void serve() throws Exception {
    @SuppressWarnings("unchecked")
    Map<String, String> settings = (Map<String, String>) tasks.readObject();
    ExecutorService worker =
        Executors.newSingleThreadExecutor(
            work -> {
              Thread thread = new Thread(work, "weft-side-tasks");
              thread.setDaemon(true);
              return thread;
            });
    worker.execute(() -> reply(() -> start(settings)));
    try {
      while (true) {
        SideTask<?> task = (SideTask<?>) tasks.readObject();
        worker.execute(() -> reply(() -> task.run(session)));
      }
    } catch (EOFException parentIsDone) {
      SparkSession.getDefaultSession().foreach(SideMain::stop);
      System.exit(0);
    }
  }

  private static Object stop(SparkSession session) {
    session.stop();
    return session;
  }

  private String start(Map<String, String> settings) {
    SparkConf conf = new SparkConf();
    settings.forEach(conf::set);
    session = SparkSession.builder().config(conf).getOrCreate();
    return session.sparkContext().applicationId();
  }

  private void reply(Callable<? extends Serializable> task) {
    SideProcess.Reply reply;
    try {
      reply = new SideProcess.Reply(task.call(), null);
    } catch (Throwable failed) {
      StringWriter trace = new StringWriter();
      failed.printStackTrace(new PrintWriter(trace));
      reply = new SideProcess.Reply(null, trace.toString());
    }
    send(reply);
  }

  private void send(Serializable reply) {
    try {
      replies.writeObject(reply);
      replies.reset();
      replies.flush();
    } catch (IOException e) {
      throw new IllegalStateException("the parent process no longer reads replies", e);
    }
  }
}
