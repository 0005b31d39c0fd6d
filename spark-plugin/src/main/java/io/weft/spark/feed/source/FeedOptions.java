package io.weft.spark.feed.source;

import io.weft.collectives.DataType;
import io.weft.spark.feed.LastBatch;
import io.weft.spark.feed.ShardedExport;
import io.weft.spark.feed.WeftFeed;
import io.weft.spark.feed.WeftTensors;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.network.util.JavaUtils;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.functions;

/**
 * The options of a save, checked. Names are case-insensitive, as everywhere in Spark. Immutable.
 *
 * @param path of the export's folder
 * @param ranks at least 1
 * @param batchRows rows of a full batch
 * @param shuffleSeed empty for the order of the data
 * @param by key columns; empty to deal rows evenly
 * @param lastBatch the treatment of rows that fill no batch
 * @param lease time until the export is freed; empty for the end of the application
 * @param toGpus whether batches go into memory of GPUs instead of files
 * @param tensors types of tensor columns, such as {@code float32[3, 224]}, by lower-case column
 */
record FeedOptions(
    String path,
    int ranks,
    int batchRows,
    Optional<Long> shuffleSeed,
    List<String> by,
    LastBatch lastBatch,
    Optional<Duration> lease,
    boolean toGpus,
    Map<String, TensorShape> tensors) {
  private static final String RANKS = "ranks";
  private static final String TENSOR = "tensor.";
  private static final List<String> NAMES =
      List.of("ranks", "batchRows", "shuffleSeed", "by", "lastBatch", "lease", "toGpus");
  private static final Pattern SHAPE =
      Pattern.compile("\\s*(\\w+)\\s*\\[\\s*(-?\\d+(?:\\s*,\\s*\\d+)*)\\s*]\\s*");

  /** Options that Spark adds: the path, and what a table's storage has. */
  private static final List<String> SPARKS = List.of("path", "serialization.format");

  /** Begins the options in which Spark passes the columns of partitionBy and clusterBy. */
  private static final String SPARKS_COLUMNS = "__";

  /** The type of each value of a tensor column. */
  record TensorShape(DataType dtype, List<Long> dimensions) {}

  /**
   * Checks the options of a save.
   *
   * @throws IllegalArgumentException naming the option, its value and what is allowed
   */
  static FeedOptions of(Map<String, String> options) {
    Map<String, String> named = new TreeMap<>(String.CASE_INSENSITIVE_ORDER);
    named.putAll(options);
    named.keySet().forEach(FeedOptions::requireKnown);
    Map<String, TensorShape> tensors = tensors(named);
    boolean toGpus = flag("toGpus", named.getOrDefault("toGpus", "false"));
    if (toGpus) {
      tensors.forEach(FeedOptions::requireFixed);
    }
    return new FeedOptions(
        required(named, "path", "the folder of the export, as in save(\"features\")"),
        atLeastOne(
            RANKS,
            required(named, RANKS, "the number of training processes, each with its own file")),
        atLeastOne("batchRows", named.getOrDefault("batchRows", "256")),
        Optional.ofNullable(named.get("shuffleSeed")).map(FeedOptions::seed),
        columns(named.getOrDefault("by", "")),
        lastBatch(named.getOrDefault("lastBatch", "drop")),
        Optional.ofNullable(named.get("lease")).map(FeedOptions::duration),
        toGpus,
        tensors);
  }

  /** Checks the options of a load, which needs only the path. */
  static FeedOptions withDefaultRanks(Map<String, String> options) {
    Map<String, String> all = new TreeMap<>(String.CASE_INSENSITIVE_ORDER);
    all.put(RANKS, "1");
    all.putAll(options);
    return of(all);
  }

  private static void requireKnown(String name) {
    if (name.startsWith(SPARKS_COLUMNS)) {
      throw new IllegalArgumentException(
          "format weft has no partitionBy and no clusterBy; the option by sends equal keys to one"
              + " rank");
    }
    boolean known =
        NAMES.stream().anyMatch(name::equalsIgnoreCase)
            || SPARKS.contains(name.toLowerCase(Locale.ROOT))
            || name.toLowerCase(Locale.ROOT).startsWith(TENSOR);
    if (!known) {
      throw new IllegalArgumentException(
          "format weft has no option %s; its options are %s and tensor.<column>"
              .formatted(name, String.join(", ", NAMES)));
    }
  }

  private static String required(Map<String, String> options, String name, String meaning) {
    String value = options.get(name);
    if (value == null) {
      throw new IllegalArgumentException(
          "format weft needs the option %s: %s".formatted(name, meaning));
    }
    return value;
  }

  private static int atLeastOne(String name, String value) {
    try {
      int number = Integer.parseInt(value.trim());
      if (number >= 1) {
        return number;
      }
    } catch (NumberFormatException e) {
      throw wrong(name, value, "a whole number, 1 or more", e);
    }
    throw wrong(name, value, "a whole number, 1 or more", null);
  }

  private static boolean flag(String name, String value) {
    return switch (value.trim().toLowerCase(Locale.ROOT)) {
      case "true" -> true;
      case "false" -> false;
      default -> throw wrong(name, value, "true or false", null);
    };
  }

  private static void requireFixed(String column, TensorShape tensor) {
    if (tensor.dimensions().contains(-1L)) {
      throw new IllegalArgumentException(
          "option toGpus of format weft takes only tensors of fixed shape, and the first dimension"
              + " of %s varies: save it to files".formatted(column));
    }
  }

  private static long seed(String value) {
    try {
      return Long.parseLong(value.trim());
    } catch (NumberFormatException e) {
      throw wrong("shuffleSeed", value, "a whole number of 64 bits", e);
    }
  }

  private static LastBatch lastBatch(String value) {
    try {
      return LastBatch.valueOf(value.trim().toUpperCase(Locale.ROOT));
    } catch (IllegalArgumentException e) {
      throw wrong("lastBatch", value, "drop or keep", e);
    }
  }

  private static Duration duration(String value) {
    String allowed = "a time above 0 with its unit, such as 90min or 8h";
    try {
      // Without a unit it would be milliseconds, which no user of a lease means.
      boolean hasUnit = !value.isBlank() && !Character.isDigit(value.charAt(value.length() - 1));
      long millis = hasUnit ? JavaUtils.timeStringAs(value, TimeUnit.MILLISECONDS) : 0;
      if (millis > 0) {
        return Duration.ofMillis(millis);
      }
    } catch (NumberFormatException e) {
      throw wrong("lease", value, allowed, e);
    }
    throw wrong("lease", value, allowed, null);
  }

  private static List<String> columns(String value) {
    return Arrays.stream(value.split(",")).map(String::trim).filter(c -> !c.isEmpty()).toList();
  }

  private static Map<String, TensorShape> tensors(Map<String, String> options) {
    Map<String, TensorShape> tensors = new TreeMap<>(String.CASE_INSENSITIVE_ORDER);
    options.forEach(
        (name, value) -> {
          if (name.toLowerCase(Locale.ROOT).startsWith(TENSOR)) {
            tensors.put(name.substring(TENSOR.length()), shape(name, value));
          }
        });
    return tensors;
  }

  private static TensorShape shape(String name, String value) {
    Matcher parts = SHAPE.matcher(value);
    if (!parts.matches()) {
      throw wrong(name, value, "a type and a shape, such as float32[3, 224, 224]", null);
    }
    try {
      List<Long> dimensions =
          Arrays.stream(parts.group(2).split(",")).map(size -> Long.valueOf(size.trim())).toList();
      return new TensorShape(DataType.parse(parts.group(1)), dimensions);
    } catch (IllegalArgumentException e) {
      throw wrong(name, value, "a type and a shape: " + e.getMessage(), e);
    }
  }

  private static IllegalArgumentException wrong(
      String name, String value, String allowed, Exception cause) {
    return new IllegalArgumentException(
        "option %s of format weft is \"%s\": it has to be %s".formatted(name, value, allowed),
        cause);
  }

  /**
   * Exchanges the rows and exports them.
   *
   * @throws IllegalArgumentException if the data lacks a named column, or cannot be fed
   */
  ShardedExport<?> export(Dataset<Row> data) {
    WeftFeed feed = feed(data);
    return toGpus ? feed.exportToGpus() : feed.export();
  }

  private WeftFeed feed(Dataset<Row> data) {
    WeftFeed feed = WeftFeed.shards(withTensors(data), ranks).batchRows(batchRows);
    feed = feed.lastBatch(lastBatch);
    if (shuffleSeed.isPresent()) {
      feed = feed.shuffled(shuffleSeed.get());
    }
    List<String> keys = existing("by", by, data).stream().map(FeedOptions::quoted).toList();
    return keys.isEmpty() ? feed : feed.by(keys.toArray(String[]::new));
  }

  /** Spark would read a name with a dot as a field of a struct. */
  private static String quoted(String column) {
    return "`" + column.replace("`", "``") + "`";
  }

  private Dataset<Row> withTensors(Dataset<Row> data) {
    if (tensors.isEmpty()) {
      return data;
    }
    List<String> unused = existing(TENSOR + "<column>", List.copyOf(tensors.keySet()), data);
    List<Column> columns = new ArrayList<>();
    for (String name : data.columns()) {
      TensorShape tensor = tensors.get(name);
      columns.add(
          tensor == null
              ? functions.col(quoted(name))
              : WeftTensors.column(
                  name,
                  tensor.dtype(),
                  tensor.dimensions().stream().mapToLong(Long::longValue).toArray()));
    }
    return data.select(columns.toArray(Column[]::new));
  }

  private static List<String> existing(String option, List<String> names, Dataset<Row> data) {
    List<String> columns = List.of(data.columns());
    for (String name : names) {
      if (columns.stream().noneMatch(name::equalsIgnoreCase)) {
        throw new IllegalArgumentException(
            "option %s of format weft names the column %s; the columns are %s"
                .formatted(option, name, String.join(", ", columns)));
      }
    }
    return names;
  }
}
