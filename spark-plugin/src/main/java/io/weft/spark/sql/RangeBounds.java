package io.weft.spark.sql;

import io.weft.spark.compat.ScalaInterop;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.SortOrder;
import org.apache.spark.sql.catalyst.expressions.SortPrefix;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.expressions.codegen.LazilyGeneratedOrdering;
import org.apache.spark.sql.execution.SortPrefixUtils;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.NumericType;
import org.apache.spark.util.collection.unsafe.sort.PrefixComparator;
import org.apache.spark.util.collection.unsafe.sort.PrefixComparators.DoublePrefixComparator;
import org.apache.spark.util.collection.unsafe.sort.PrefixComparators.RadixSortSupport;
import scala.Product2;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The highest keys of all range partitions but the last. A row belongs to the first partition whose
 * highest key is not lower than the row's key, as with Spark's range partitioner.
 *
 * <p>Immutable. Serialized with the map tasks.
 *
 * @param keys highest keys, each higher than the one before
 * @param orders the sort orders of a key
 * @param output the columns of the rows
 */
record RangeBounds(List<UnsafeRow> keys, List<SortOrder> orders, Seq<Attribute> output)
    implements Serializable {
  RangeBounds {
    keys = List.copyOf(keys);
    orders = List.copyOf(orders);
  }

  int numPartitions() {
    return keys.size() + 1;
  }

  /** Returns the sort keys as expressions over rows. */
  static Seq<Expression> keysOf(List<SortOrder> orders) {
    return ScalaInterop.seq(orders.stream().map(SortOrder::child).toList());
  }

  /** Returns the ordering of keys that were computed by {@link #keysOf}. */
  static LazilyGeneratedOrdering ordering(List<SortOrder> orders) {
    return new LazilyGeneratedOrdering(ScalaInterop.seq(overKeys(orders)));
  }

  private static List<SortOrder> overKeys(List<SortOrder> orders) {
    List<SortOrder> over = new ArrayList<>();
    for (SortOrder order : orders) {
      Expression key =
          new BoundReference(over.size(), order.child().dataType(), order.child().nullable());
      over.add(
          order.copy(key, order.direction(), order.nullOrdering(), order.sameOrderExpressions()));
    }
    return over;
  }

  /** Finds the partitions of packed rows, as {@link PartitionedRows#of} says. */
  RDD<Product2<Object, InternalRow>> partitioned(RDD<InternalRow> rows, long stage) {
    return PartitionedRows.of(rows, numPartitions(), () -> search()::partition, stage);
  }

  /** Creates the search for one task. */
  Search search() {
    return new Search(this);
  }

  /**
   * Finds the partitions of rows. It compares 64-bit prefixes of the first sort key, which Spark
   * computes for its sorts, and whole keys only where prefixes are equal.
   *
   * <p>For one task thread.
   */
  static final class Search {
    private final List<UnsafeRow> bounds;
    private final LazilyGeneratedOrdering ordering;
    private final UnsafeProjection keyOf;
    private final Prefix prefix;
    private final long[] prefixes;
    private final PrefixTable table;

    private Search(RangeBounds ranges) {
      this.bounds = ranges.keys();
      this.ordering = ordering(ranges.orders());
      this.keyOf = UnsafeProjection.create(keysOf(ranges.orders()), ranges.output());
      this.prefix = new Prefix(ranges.orders(), ranges.output());
      this.prefixes = bounds.stream().mapToLong(prefix::ofKey).toArray();
      this.table = new PrefixTable(prefixes, prefix.ofNull());
    }

    /** The number of the last partition. */
    int last() {
      return prefixes.length;
    }

    /** Returns the partition of a row. */
    int partition(InternalRow row) {
      long wanted = prefix.ofRow(row);
      int lower = table.lower(wanted);
      boolean decided = prefix.complete || lower == prefixes.length || prefixes[lower] != wanted;
      return decided ? lower : partition(keyOf.apply(row), lower, wanted);
    }

    /** Searches the bounds of one prefix. */
    private int partition(UnsafeRow key, int from, long wanted) {
      int low = from;
      int high = from + 1;
      while (high < prefixes.length && prefixes[high] == wanted) {
        high++;
      }
      while (low < high) {
        int middle = (low + high) >>> 1;
        if (ordering.compare(key, bounds.get(middle)) > 0) {
          low = middle + 1;
        } else {
          high = middle;
        }
      }
      return low;
    }
  }

  /**
   * Counts lower prefixes. A table divides the range of the prefixes into intervals of equal length
   * and has the count at the begin of each. If prefixes are spread evenly, most intervals have
   * none, and a search there ends without a comparison. Within an interval, a binary search has no
   * branches on its comparisons, whose results a processor could not predict.
   *
   * <p>The prefix of nulls is outside the range, because it is far from all others.
   *
   * <p>Immutable.
   */
  static final class PrefixTable {
    private static final int INTERVALS_PER_PREFIX = 32;
    private static final int MAX_INTERVALS = 1 << 15;

    private final long[] prefixes;

    /** The prefixes from this one to {@link #end} are in the table; those of nulls are not. */
    private final int first;

    private final int end;
    private final long least;
    private final long greatest;

    /** The binary logarithm of an interval's length. */
    private final int shift;

    /** Counts of prefixes below each interval, and of all prefixes of the table. */
    private final int[] below;

    /**
     * Makes a table.
     *
     * @param prefixes in ascending order
     * @param ofNull the prefix of nulls
     */
    PrefixTable(long[] prefixes, long ofNull) {
      this.prefixes = prefixes;
      int from = 0;
      int to = prefixes.length;
      while (from < to && prefixes[from] == ofNull) {
        from++;
      }
      while (to > from && prefixes[to - 1] == ofNull) {
        to--;
      }
      this.first = from;
      this.end = to;
      this.least = from == to ? ofNull : prefixes[from];
      this.greatest = from == to ? ofNull : prefixes[to - 1];
      long span = greatest - least;
      int wanted = Math.min(INTERVALS_PER_PREFIX * Math.max(to - from, 1), MAX_INTERVALS);
      int bits = Integer.SIZE - Integer.numberOfLeadingZeros(wanted - 1);
      this.shift = Math.max(0, Long.SIZE - Long.numberOfLeadingZeros(span) - bits);
      int intervals = interval(greatest) + 1;
      this.below = new int[intervals + 1];
      for (int interval = 0, count = from; interval <= intervals; interval++) {
        while (count < to && interval(prefixes[count]) < interval) {
          count++;
        }
        below[interval] = count;
      }
    }

    /** The interval of a number from the least to the greatest prefix. */
    private int interval(long number) {
      return (int) ((number - least) >>> shift);
    }

    /** Returns the number of prefixes that are lower than a number. */
    int lower(long wanted) {
      if (wanted <= least) {
        return first > 0 && wanted > prefixes[0] ? first : 0;
      }
      if (wanted > greatest) {
        return end < prefixes.length && wanted <= prefixes[end] ? end : prefixes.length;
      }
      int interval = interval(wanted);
      int from = below[interval];
      for (int left = below[interval + 1] - from; left > 0; ) {
        int half = (left + 1) >>> 1;
        from += prefixes[from + half - 1] < wanted ? half : 0;
        left -= half;
      }
      return from;
    }
  }

  /** Prefixes of keys, as signed numbers in the order of keys. For one task thread. */
  private static final class Prefix {
    /** Whether keys of equal prefixes are equal. */
    private final boolean complete;

    private final SortPrefix ofKey;

    /** Computes the prefix of a key that is a column of one of its types; null for other keys. */
    private final OfColumn ofColumn;

    private final int column;

    /** Computes prefixes of other keys; null if they have none, or for {@link #ofColumn}. */
    private final UnsafeProjection ofRow;

    private final long ifNull;
    private final long signBit;
    private final long inversion;

    Prefix(List<SortOrder> orders, Seq<Attribute> output) {
      SortOrder first = orders.get(0);
      PrefixComparator comparator =
          hasPrefix(first.dataType()) ? SortPrefixUtils.getPrefixComparator(first) : null;
      if (comparator instanceof RadixSortSupport order) {
        ofKey = new SortPrefix(overKeys(orders).get(0));
        SortPrefix ofColumns = new SortPrefix(first);
        column = columnOf(first.child(), output);
        ofColumn = column < 0 ? null : OfColumn.ofType(first.dataType());
        ofRow =
            ofColumn != null
                ? null
                : UnsafeProjection.create(ScalaInterop.seq((Expression) ofColumns), output);
        ifNull = ofColumns.nullValue();
        signBit = order.sortSigned() ? 0 : Long.MIN_VALUE;
        inversion = order.sortDescending() ? -1 : 0;
      } else {
        ofKey = null;
        column = -1;
        ofColumn = null;
        ofRow = null;
        ifNull = signBit = inversion = 0;
      }
      complete =
          ofKey != null
              && orders.size() == 1
              && !first.child().nullable()
              && SortPrefixUtils.canSortFullyWithPrefix(first);
    }

    /** Whether prefixes of a type are in the order of values. Those of collations are not. */
    private static boolean hasPrefix(DataType type) {
      return type.equals(DataTypes.StringType)
          || type instanceof BinaryType
          || type instanceof NumericType
          || type.equals(DataTypes.BooleanType)
          || type.equals(DataTypes.DateType)
          || type.equals(DataTypes.TimestampType)
          || type.equals(DataTypes.TimestampNTZType);
    }

    long ofKey(UnsafeRow key) {
      return ofKey == null ? 0 : ordered((Long) ofKey.eval(key));
    }

    long ofNull() {
      return ordered(ifNull);
    }

    private long ordered(Long prefix) {
      return ordered(prefix == null ? ifNull : (long) prefix);
    }

    private long ordered(long prefix) {
      return (prefix ^ signBit) ^ inversion;
    }

    /** The position of a key that is a column, or -1. */
    private static int columnOf(Expression key, Seq<Attribute> output) {
      List<Attribute> columns = CollectionConverters.asJava(output);
      return key instanceof Attribute column
          ? columns.stream().map(Attribute::exprId).toList().indexOf(column.exprId())
          : -1;
    }

    long ofRow(InternalRow row) {
      if (ofColumn != null) {
        return ordered(row.isNullAt(column) ? ifNull : ofColumn.of(row, column));
      }
      if (ofRow == null) {
        return 0;
      }
      UnsafeRow prefix = ofRow.apply(row);
      return ordered(prefix.isNullAt(0) ? ifNull : prefix.getLong(0));
    }
  }

  /** Computes Spark's prefix of a column that is not null, without a projection. Stateless. */
  private interface OfColumn {
    long of(InternalRow row, int column);

    /** Returns null for types whose prefix needs a projection. */
    static OfColumn ofType(DataType type) {
      if (type.equals(DataTypes.LongType)
          || type.equals(DataTypes.TimestampType)
          || type.equals(DataTypes.TimestampNTZType)) {
        return (row, column) -> row.getLong(column);
      } else if (type.equals(DataTypes.IntegerType) || type.equals(DataTypes.DateType)) {
        return (row, column) -> row.getInt(column);
      } else if (type.equals(DataTypes.DoubleType)) {
        return (row, column) -> DoublePrefixComparator.computePrefix(row.getDouble(column));
      } else if (type.equals(DataTypes.StringType)) {
        return (row, column) -> row.getUTF8String(column).getPrefix();
      }
      return null;
    }
  }
}
