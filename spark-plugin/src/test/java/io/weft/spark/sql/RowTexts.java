package io.weft.spark.sql;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import scala.jdk.javaapi.CollectionConverters;

/** Query results as text that is equal exactly if the rows are equal. */
final class RowTexts {
  private RowTexts() {}

  /** In any order. */
  static List<String> unordered(Dataset<Row> rows) {
    List<String> texts = new ArrayList<>(ordered(rows));
    Collections.sort(texts);
    return texts;
  }

  /** In the order of the result. */
  static List<String> ordered(Dataset<Row> rows) {
    return rows.collectAsList().stream().map(RowTexts::text).toList();
  }

  private static String text(Object value) {
    if (value instanceof Row row) {
      List<String> fields = new ArrayList<>();
      for (int i = 0; i < row.length(); i++) {
        fields.add(text(row.get(i)));
      }
      return fields.toString();
    }
    if (value instanceof byte[] bytes) {
      return HexFormat.of().formatHex(bytes);
    }
    if (value instanceof scala.collection.Map<?, ?> map) {
      return text(CollectionConverters.asJava(map));
    }
    if (value instanceof Map<?, ?> map) {
      Map<String, String> sorted = new TreeMap<>();
      map.forEach((key, entry) -> sorted.put(text(key), text(entry)));
      return sorted.toString();
    }
    if (value instanceof scala.collection.Iterable<?> items) {
      List<String> texts = new ArrayList<>();
      CollectionConverters.asJava(items).forEach(item -> texts.add(text(item)));
      return texts.toString();
    }
    return value + (value == null ? "" : ":" + value.getClass().getSimpleName());
  }
}
