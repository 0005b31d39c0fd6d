package io.weft.tests.application;

import io.weft.tests.workload.Queries;
import io.weft.tests.workload.Query;
import io.weft.tests.workload.RowText;
import io.weft.tests.workload.Tables;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.spark.MapOutputTrackerMaster;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkEnv;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerTaskEnd;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.functions;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Executes orders that the test sends on standard input, one per line, and reports their results. A
 * line is a number, which identifies the answer, and an order. The arguments are the folder of the
 * tables and the folder for results. It ends with its input, or at {@code quit}.
 *
 * <ul>
 *   <li>{@code answer NAME}: runs a query with and without adaptive execution and writes its rows
 *       to two files
 *   <li>{@code compact}: the same for all of {@link Queries#compact}
 *   <li>{@code set KEY VALUE}: changes the session
 *   <li>{@code sql TEXT}: runs a statement and reports the number of its rows
 *   <li>{@code plan TEXT}: reports a query's plan on one line
 *   <li>{@code page PATH}: reports a page of the application's UI on one line
 *   <li>{@code version}, {@code manager}: reports Spark's version, the class of the shuffle manager
 *   <li>{@code statistics}: reports the counters of every executor
 *   <li>{@code shuffle TEXT}: shuffles the rows of a query and reports their number and hash
 *   <li>{@code again}: reads the same shuffle again; also reports the map tasks that ran
 *   <li>{@code places}: reports the executors that have the outputs of the last shuffle
 * </ul>
 *
 * It fails if other code has stopped its context.
 */
public final class InteractiveApplication {
  private static final long EVENTS_MILLIS = 60_000;

  private final SparkSession session;
  private final Path results;

  /** The rows of the last shuffle. */
  private JavaRDD<String> shuffled;

  private InteractiveApplication(SparkSession session, Path results) {
    this.session = session;
    this.results = results;
  }

  /** Starts the session, reports {@code ready}, and executes orders. */
  public static void main(String[] arguments) throws IOException {
    SparkSession session = SparkSession.builder().getOrCreate();
    try {
      Tables.register(session, Path.of(arguments[0]));
      Queries.configure(session, true);
      Stage.send("ready " + session.sparkContext().applicationId());
      new InteractiveApplication(session, Path.of(arguments[1])).followOrders();
    } finally {
      session.stop();
    }
  }

  private void followOrders() throws IOException {
    BufferedReader orders =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = orders.readLine(); line != null; line = orders.readLine()) {
      String[] numberAndOrder = line.split(" ", 2);
      if (numberAndOrder[1].equals("quit")) {
        return;
      }
      follow(numberAndOrder[0], numberAndOrder[1]);
    }
  }

  private void follow(String number, String order) {
    String[] verbAndObject = order.split(" ", 2);
    String object = verbAndObject.length == 1 ? "" : verbAndObject[1];
    try {
      Stage.send("done " + number + ": " + act(verbAndObject[0], object));
    } catch (Exception e) {
      e.printStackTrace();
      Stage.send("failed " + number + ": " + e.toString().replace('\n', ' '));
      if (session.sparkContext().isStopped()) {
        throw new IllegalStateException("the application was stopped meanwhile", e);
      }
    }
  }

  private String act(String verb, String object) throws IOException {
    return switch (verb) {
      case "answer" -> answer(find(object));
      case "compact" -> compact();
      case "set" -> set(object.split(" ", 2));
      case "sql" -> Long.toString(session.sql(object).collectAsList().size());
      case "plan" ->
          session.sql(object).queryExecution().executedPlan().toString().replace('\n', ' ');
      case "page" -> page(object);
      case "version" -> session.version();
      case "manager" -> SparkEnv.get().shuffleManager().getClass().getName();
      case "statistics" -> ExecutorProbe.statistics(session.sparkContext()).toString();
      case "shuffle" -> shuffle(object);
      case "again" -> again();
      case "places" -> places();
      default -> throw new IllegalArgumentException("no such order");
    };
  }

  private String shuffle(String text) {
    session.conf().set("spark.sql.adaptive.enabled", "false");
    shuffled =
        session.sql(text).repartition(5, functions.col("id")).javaRDD().map(RowText.FUNCTION);
    return rows();
  }

  private String rows() {
    List<String> rows = shuffled.collect().stream().sorted().toList();
    return rows.size() + " rows " + rows.hashCode();
  }

  private String again() {
    AtomicInteger mapTasks = new AtomicInteger();
    SparkListener listener =
        new SparkListener() {
          @Override
          public void onTaskEnd(SparkListenerTaskEnd end) {
            if (end.taskType().equals("ShuffleMapTask")) {
              mapTasks.incrementAndGet();
            }
          }
        };
    SparkContext context = session.sparkContext();
    context.addSparkListener(listener);
    try {
      String rows = rows();
      context.listenerBus().waitUntilEmpty(EVENTS_MILLIS);
      return rows + ", " + mapTasks.get() + " map tasks";
    } catch (TimeoutException e) {
      throw new IllegalStateException("Spark's listeners are late", e);
    } finally {
      context.removeSparkListener(listener);
    }
  }

  private static String places() {
    MapOutputTrackerMaster tracker = (MapOutputTrackerMaster) SparkEnv.get().mapOutputTracker();
    int last =
        CollectionConverters.asJava(tracker.shuffleStatuses().keys().toSeq()).stream()
            .mapToInt(shuffle -> (Integer) shuffle)
            .max()
            .orElseThrow();
    return Stream.of(tracker.shuffleStatuses().apply(last).mapStatuses())
        .map(status -> status == null ? "none" : status.location().executorId())
        .collect(Collectors.joining(" "));
  }

  private String page(String path) throws IOException {
    String url = session.sparkContext().uiWebUrl().get() + path;
    try (InputStream in = URI.create(url).toURL().openStream()) {
      return new String(in.readAllBytes(), StandardCharsets.UTF_8).replace('\n', ' ');
    }
  }

  private String compact() throws IOException {
    List<Query> queries = Queries.compact();
    for (Query query : queries) {
      answer(query);
    }
    return queries.size() + " queries";
  }

  private String answer(Query query) throws IOException {
    int rows = 0;
    for (boolean adaptive : new boolean[] {true, false}) {
      Queries.configure(session, adaptive);
      List<String> answer = query.run(session);
      Files.write(results.resolve(query.name() + (adaptive ? ".adaptive" : ".static")), answer);
      rows += answer.size();
    }
    return rows + " rows";
  }

  private String set(String[] keyAndValue) {
    session.conf().set(keyAndValue[0], keyAndValue[1]);
    return "set";
  }

  private static Query find(String name) {
    return Queries.all().stream()
        .filter(query -> query.name().equals(name))
        .findFirst()
        .orElseThrow(() -> new IllegalArgumentException("no query " + name));
  }
}
