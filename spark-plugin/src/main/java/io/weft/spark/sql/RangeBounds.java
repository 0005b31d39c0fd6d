package io.weft.spark.sql;

import io.weft.spark.compat.NarrowRDD;
import io.weft.spark.compat.ScalaInterop;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
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
import org.apache.spark.util.MutablePair;
import org.apache.spark.util.collection.unsafe.sort.PrefixComparator;
import org.apache.spark.util.collection.unsafe.sort.PrefixComparators.RadixSortSupport;
import scala.Product2;
import scala.collection.AbstractIterator;
import scala.collection.Iterator;
import scala.collection.immutable.Seq;

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

  /** Returns rows, each valid until the next one, with their partitions. */
  RDD<Product2<Object, InternalRow>> partitioned(RDD<InternalRow> rows) {
    return NarrowRDD.over(rows, Product2.class, input -> new PartitionedRows(input, search()));
  }

  /** Creates the search for one task. */
  Search search() {
    return new Search(this);
  }

  /** For one task thread. */
  private static final class PartitionedRows
      extends AbstractIterator<Product2<Object, InternalRow>> {
    private final Iterator<InternalRow> rows;
    private final Search search;
    private final Integer[] numbers;
    private final MutablePair<Object, InternalRow> pair = new MutablePair<>();

    PartitionedRows(Iterator<InternalRow> rows, Search search) {
      this.rows = rows;
      this.search = search;
      this.numbers = IntStream.rangeClosed(0, search.last()).boxed().toArray(Integer[]::new);
    }

    @Override
    public boolean hasNext() {
      return rows.hasNext();
    }

    @Override
    public Product2<Object, InternalRow> next() {
      InternalRow row = rows.next();
      return pair.update(numbers[search.partition(row)], row);
    }
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

    private Search(RangeBounds ranges) {
      this.bounds = ranges.keys();
      this.ordering = ordering(ranges.orders());
      this.keyOf = UnsafeProjection.create(keysOf(ranges.orders()), ranges.output());
      this.prefix = new Prefix(ranges.orders(), ranges.output());
      this.prefixes = bounds.stream().mapToLong(prefix::ofKey).toArray();
    }

    /** The number of the last partition. */
    int last() {
      return prefixes.length;
    }

    /** Returns the partition of a row. */
    int partition(InternalRow row) {
      long wanted = prefix.ofRow(row);
      int lower = lower(wanted);
      boolean decided = prefix.complete || lower == prefixes.length || prefixes[lower] != wanted;
      return decided ? lower : partition(keyOf.apply(row), lower, wanted);
    }

    /** Returns the number of lower prefixes, without branches that depend on the prefix. */
    private int lower(long wanted) {
      int from = 0;
      for (int left = prefixes.length; left > 0; ) {
        int half = (left + 1) >>> 1;
        from += prefixes[from + half - 1] < wanted ? half : 0;
        left -= half;
      }
      return from;
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

  /** Prefixes of keys, as signed numbers in the order of keys. For one task thread. */
  private static final class Prefix {
    /** Whether keys of equal prefixes are equal. */
    private final boolean complete;

    private final SortPrefix ofKey;
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
        ofRow = UnsafeProjection.create(ScalaInterop.seq((Expression) ofColumns), output);
        ifNull = ofColumns.nullValue();
        signBit = order.sortSigned() ? 0 : Long.MIN_VALUE;
        inversion = order.sortDescending() ? -1 : 0;
      } else {
        ofKey = null;
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

    private long ordered(Long prefix) {
      return ordered(prefix == null ? ifNull : (long) prefix);
    }

    private long ordered(long prefix) {
      return (prefix ^ signBit) ^ inversion;
    }

    long ofRow(InternalRow row) {
      if (ofRow == null) {
        return 0;
      }
      UnsafeRow prefix = ofRow.apply(row);
      return ordered(prefix.isNullAt(0) ? ifNull : prefix.getLong(0));
    }
  }
}
