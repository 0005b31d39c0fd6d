package io.weft.tests.workload;

import java.sql.Timestamp;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import org.apache.spark.api.java.function.Function;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Writes rows as text. Two rows have the same text only if they are equal. Floating point numbers
 * are written with their bits, so that -0.0 differs from 0.0 and every NaN is distinct. Control
 * characters of strings are escaped, and binary is hexadecimal.
 */
public final class RowText {
  /** {@link #of} for executors: a function from another class would need that class there. */
  public static final Function<Row, String> FUNCTION = RowText::of;

  private RowText() {}

  /** Collects the data set; rows keep the order in which it returns them. */
  public static List<String> collect(Dataset<Row> data) {
    List<String> lines = new ArrayList<>();
    for (Row row : data.collectAsList()) {
      lines.add(of(row));
    }
    return lines;
  }

  /** One row on one line. */
  public static String of(Row row) {
    StringBuilder out = new StringBuilder();
    appendRow(out, row);
    return out.toString();
  }

  private static void appendRow(StringBuilder out, Row row) {
    out.append('{');
    for (int field = 0; field < row.size(); field++) {
      out.append(field == 0 ? "" : ", ");
      append(out, row.get(field));
    }
    out.append('}');
  }

  private static void append(StringBuilder out, Object value) {
    if (value == null) {
      out.append("null");
    } else if (value instanceof Row row) {
      appendRow(out, row);
    } else if (value instanceof scala.collection.Map<?, ?> map) {
      appendMap(out, CollectionConverters.asJava(map));
    } else if (value instanceof scala.collection.Seq<?> items) {
      appendAll(out, CollectionConverters.asJava(items));
    } else {
      appendSimple(out, value);
    }
  }

  private static void appendSimple(StringBuilder out, Object value) {
    if (value instanceof String text) {
      appendString(out, text);
    } else if (value instanceof Double number) {
      out.append(number).append("d:").append(Long.toHexString(Double.doubleToRawLongBits(number)));
    } else if (value instanceof Float number) {
      out.append(number).append("f:").append(Integer.toHexString(Float.floatToRawIntBits(number)));
    } else if (value instanceof byte[] bytes) {
      out.append("0x").append(HexFormat.of().formatHex(bytes));
    } else if (value instanceof Timestamp timestamp) {
      out.append(timestamp.toInstant());
    } else {
      out.append(value.getClass().getSimpleName()).append(':').append(value);
    }
  }

  private static void appendString(StringBuilder out, String text) {
    out.append('"');
    for (int i = 0; i < text.length(); i++) {
      char c = text.charAt(i);
      if (c == '"' || c == '\\') {
        out.append('\\').append(c);
      } else if (c < ' ') {
        out.append(String.format("\\u%04x", (int) c));
      } else {
        out.append(c);
      }
    }
    out.append('"');
  }

  private static void appendAll(StringBuilder out, Collection<?> items) {
    out.append('[');
    String separator = "";
    for (Object item : items) {
      out.append(separator);
      append(out, item);
      separator = ", ";
    }
    out.append(']');
  }

  private static void appendMap(StringBuilder out, Map<?, ?> map) {
    out.append('<');
    String separator = "";
    for (Map.Entry<?, ?> entry : map.entrySet()) {
      out.append(separator);
      append(out, entry.getKey());
      out.append(" -> ");
      append(out, entry.getValue());
      separator = ", ";
    }
    out.append('>');
  }
}
