package io.weft.examples.tpch;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import io.trino.tpch.LineItem;
import io.trino.tpch.LineItemColumn;
import io.trino.tpch.TpchColumn;
import io.trino.tpch.TpchColumnType;
import io.trino.tpch.TpchEntity;
import io.trino.tpch.TpchTable;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.StructType;
import org.junit.jupiter.api.Test;

class WriteTableTest {
  private static final double SCALE = 0.001;

  @Test
  void moneyKeepsItsCents() {
    for (TpchTable<?> table : TpchTable.getTables()) {
      compareMoney(table);
    }
  }

  private static <E extends TpchEntity> void compareMoney(TpchTable<E> table) {
    StructType schema = WriteTable.schema(table);
    Iterator<InternalRow> rows = WriteTable.rows(table, SCALE, 1, 1);
    for (E entity : table.createGenerator(SCALE, 1, 1)) {
      InternalRow row = rows.next();
      for (TpchColumn<E> column : table.getColumns()) {
        if (column.getType().getBase() == TpchColumnType.Base.DOUBLE) {
          int index = schema.fieldIndex(column.getColumnName());
          assertThat(row.getDecimal(index, 15, 2).toDouble())
              .as(column.getColumnName())
              .isCloseTo(column.getDouble(entity), within(1e-6));
        }
      }
    }
    assertThat(rows.hasNext()).isFalse();
  }

  @Test
  void otherTypesKeepTheirValues() {
    StructType schema = WriteTable.schema(TpchTable.LINE_ITEM);
    InternalRow row = WriteTable.rows(TpchTable.LINE_ITEM, SCALE, 1, 1).next();
    LineItem first = TpchTable.LINE_ITEM.createGenerator(SCALE, 1, 1).iterator().next();
    assertThat(schema.fieldNames()).startsWith("l_orderkey", "l_partkey");
    assertThat(row.getLong(schema.fieldIndex("l_partkey"))).isEqualTo(first.getPartKey());
    assertThat(row.getInt(schema.fieldIndex("l_shipdate"))).isEqualTo(first.getShipDate());
    assertThat(row.getUTF8String(schema.fieldIndex("l_comment")).toString())
        .isEqualTo(LineItemColumn.COMMENT.getString(first));
  }

  @Test
  void allPartsTogetherAreTheWholeTable() {
    List<Long> whole = keys(1, 1);
    List<Long> parts = new ArrayList<>(keys(1, 2));
    parts.addAll(keys(2, 2));
    assertThat(parts).isEqualTo(whole).hasSize(1500);
  }

  private static List<Long> keys(int part, int parts) {
    List<Long> keys = new ArrayList<>();
    WriteTable.rows(TpchTable.ORDERS, SCALE, part, parts)
        .forEachRemaining(row -> keys.add(row.getLong(0)));
    return keys;
  }
}
