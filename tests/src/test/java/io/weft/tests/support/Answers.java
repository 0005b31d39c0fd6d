package io.weft.tests.support;

import io.weft.tests.workload.Queries;
import io.weft.tests.workload.Query;
import io.weft.tests.workload.Tables;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.SparkSession;

/**
 * The expected answers of the queries from Spark's own shuffle, each computed once for all tests of
 * a build: JVMs of the same build share them in a folder.
 *
 * <p>For the single thread that runs the tests.
 */
public final class Answers {
  private static final Path FOLDER = BuildTree.folderOfThisBuild("answers");
  private static final Path TABLES = FOLDER.resolve("parquet");
  private static final Map<String, List<String>> ANSWERS = new HashMap<>();
  private static boolean prepared;

  private Answers() {}

  /** The folder of the tables' Parquet files. */
  public static Path tables() {
    if (!prepared) {
      throw new IllegalStateException("Answers.prepare has not been called");
    }
    return TABLES;
  }

  /** Writes the tables and runs the queries without an answer yet. No session may be open. */
  public static void prepare(List<Query> queries) {
    List<Query> open =
        queries.stream().filter(query -> !ANSWERS.containsKey(query.name())).toList();
    if (!Files.exists(TABLES) || !open.stream().allMatch(query -> Files.exists(file(query)))) {
      Workspace workspace = new Workspace();
      workspace.open("answers");
      SparkSession session = Sessions.plain(workspace);
      try {
        ask(session, open);
      } finally {
        session.stop();
      }
      workspace.close();
    }
    prepared = true;
    open.forEach(query -> ANSWERS.put(query.name(), read(file(query))));
  }

  private static void ask(SparkSession session, List<Query> open) {
    List<Query> inTurn = new ArrayList<>(open);
    if (!writeTables(session)) {
      // The JVM that wrote the tables may be at work on the same queries, from the first on.
      Collections.reverse(inTurn);
    }
    Tables.register(session, TABLES);
    Queries.configure(session, true);
    for (Query query : inTurn) {
      if (!Files.exists(file(query))) {
        write(file(query), query.run(session));
      }
    }
  }

  /** Returns whether this JVM has written the tables, and no other one. */
  private static boolean writeTables(SparkSession session) {
    try (FileChannel file =
            FileChannel.open(
                FOLDER.resolve("lock"), StandardOpenOption.CREATE, StandardOpenOption.WRITE);
        FileLock held = file.lock()) {
      boolean mine = !Files.exists(TABLES);
      if (mine) {
        Path unfinished = FOLDER.resolve("unfinished");
        Folders.delete(unfinished);
        Tables.writeParquet(session, unfinished);
        Files.move(unfinished, TABLES);
      }
      return mine;
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static Path file(Query query) {
    return FOLDER.resolve(query.name());
  }

  private static List<String> read(Path file) {
    try {
      return Files.readAllLines(file);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** A file that exists is complete. */
  private static void write(Path file, List<String> rows) {
    try {
      Path unfinished = Files.createTempFile(FOLDER, "unfinished-", "");
      Files.write(unfinished, rows);
      Files.move(unfinished, file, StandardCopyOption.ATOMIC_MOVE);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** The rows of a prepared query, in the form of {@link Query#run}. */
  public static List<String> of(Query query) {
    List<String> answer = ANSWERS.get(query.name());
    if (answer == null) {
      throw new IllegalArgumentException("Not prepared: " + query.name());
    }
    return answer;
  }
}
