package io.weft.spark.sql;

import io.weft.spark.columns.ColumnarSchema;
import io.weft.spark.columns.HashBatchPartitioner;
import io.weft.spark.compat.ScalaInterop;
import io.weft.spark.compat.SparkFeatures;
import io.weft.spark.shuffle.RowTarget;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.atomic.AtomicLong;
import java.util.regex.Pattern;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkContext$;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.expressions.AttributeSet$;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.codegen.CodeGenerator;
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenContext;
import org.apache.spark.sql.catalyst.expressions.codegen.ExprCode;
import org.apache.spark.sql.catalyst.expressions.codegen.JavaCode;
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning;
import org.apache.spark.sql.catalyst.plans.physical.Partitioning;
import org.apache.spark.sql.execution.FileSourceScanExec;
import org.apache.spark.sql.execution.ProjectExec;
import org.apache.spark.sql.execution.SortExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.WholeStageCodegenExec;
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec;
import org.apache.spark.sql.execution.metric.SQLMetric;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.status.api.v1.ExecutorSummary;
import org.apache.spark.unsafe.array.ByteArrayMethods;
import scala.collection.immutable.Map;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Spark's stage of generated code below an exchange, which here writes each row straight into the
 * chunk of its partition: there is no row buffer, no queue of rows and no iterator between the
 * stage and the shuffle's writer. It is executed in place of the stage, and is no part of the plan.
 *
 * <p>Rows that are packed anyway are copied into the chunk: those of a sort, those with nested or
 * many columns, and those whose partition needs the packed row, as that of a range does. A
 * repartition without keys copies them into its buffer.
 */
public final class DirectStage extends WholeStageCodegenExec {
  /**
   * A row has one word of null bits, and the generated method stays below the size from which the
   * JVM does not compile it.
   */
  private static final int MAX_COLUMNS = Long.SIZE;

  private static final Set<String> SIMPLE =
      Set.of("boolean", "byte", "short", "int", "long", "float", "double", "UTF8String", "byte[]");

  /**
   * Up to this multiple of the size of columns, rows of numbers take the rows route: they are
   * written and read faster, although they have more bytes. See docs/benchmarks.md.
   */
  private static final double MAX_ROWS_PER_COLUMNS = 1.3;

  private static final Pattern PORT = Pattern.compile(":\\d+$");

  private static final AtomicLong KEYS = new AtomicLong();

  private final transient WholeStageCodegenExec replaced;
  private final long key;

  private DirectStage(
      WholeStageCodegenExec replaced, Optional<HashPartitioning> partitioning, long key) {
    super(new Writing(replaced, partitioning, key), replaced.codegenStageId());
    this.replaced = replaced;
    this.key = key;
  }

  /**
   * Creates the stage for the child of an exchange.
   *
   * @param partitioning of the exchange; if by hash, by plain columns
   * @return empty if the child is no stage of generated code, or if generated code cannot refer to
   *     Weft's classes
   */
  static Optional<DirectStage> of(SparkPlan child, Partitioning partitioning) {
    Optional<HashPartitioning> byHash =
        partitioning instanceof HashPartitioning hash ? Optional.of(hash) : Optional.empty();
    return child instanceof WholeStageCodegenExec stage && isVisible()
        ? Optional.of(
            stage
                .session()
                .withActive(() -> new DirectStage(stage, byHash, KEYS.incrementAndGet())))
        : Optional.empty();
  }

  /**
   * Whether this stage is the fastest way to exchange the batches of Spark's scan of files: they
   * are of numbers that as rows are nearly as small, no network carries them, and no checksums of
   * rows are computed.
   *
   * @param exchange of a schema that both routes support
   */
  static boolean suits(ShuffleExchangeExec exchange) {
    SQLConf conf = exchange.conf();
    StructType schema = exchange.schema();
    return exchange.child() instanceof FileSourceScanExec
        && isVisible()
        && exchange.outputPartitioning() instanceof HashPartitioning hash
        && hash.numPartitions() > 1
        && RowsExchangeExec.improves(hash, exchange.child().output(), conf)
        && schema.size() <= MAX_COLUMNS
        && !SparkFeatures.rowChecksums(conf).isComputed()
        && ColumnarSchema.rowsPerColumns(schema).orElse(Double.MAX_VALUE) <= MAX_ROWS_PER_COLUMNS
        && isOnOneHost(exchange.session().sparkContext());
  }

  /** The driver may be elsewhere. */
  private static boolean isOnOneHost(SparkContext context) {
    return context.isLocal()
        || isOneHost(
            CollectionConverters.asJava(context.statusStore().executorList(true)).stream()
                .filter(
                    executor -> !executor.id().equals(SparkContext$.MODULE$.DRIVER_IDENTIFIER()))
                .map(ExecutorSummary::hostPort)
                .toList());
  }

  /**
   * Whether there are executors, and all on the same host.
   *
   * @param addresses of executors: each a host and a port with a colon between. Spark gives only
   *     the host until the executor's block manager is known
   */
  static boolean isOneHost(List<String> addresses) {
    return addresses.stream()
            .map(address -> PORT.matcher(address).replaceFirst(""))
            .distinct()
            .count()
        == 1;
  }

  /** Spark compiles generated code with the thread's class loader, or else with its own. */
  private static boolean isVisible() {
    ClassLoader threads = Thread.currentThread().getContextClassLoader();
    ClassLoader loader = threads == null ? SparkPlan.class.getClassLoader() : threads;
    try {
      return Class.forName(RowTarget.class.getName(), false, loader) == RowTarget.class;
    } catch (ClassNotFoundException e) {
      return false;
    }
  }

  private static List<DataType> types(Seq<Attribute> columns) {
    return CollectionConverters.asJava(columns).stream().map(Attribute::dataType).toList();
  }

  /** By which the writer of the shuffle offers its chunks: see {@link RowTarget}. */
  long key() {
    return key;
  }

  /** Whether Spark runs its own stage, because it cannot use the code of this one. */
  boolean isUnused() {
    return ((Writing) child()).unused;
  }

  /** The metrics of the stage in the plan. */
  @Override
  public Map<String, SQLMetric> metrics() {
    return replaced.metrics();
  }

  @Override
  public WholeStageCodegenExec withNewChildInternal(SparkPlan child) {
    throw new UnsupportedOperationException("a direct stage is no part of a plan");
  }

  /**
   * The end of the stage's generated code. Operators refer to the node above them, and some of them
   * are serialized with the code. So fields are transient or small.
   */
  public static final class Writing extends ProjectExec {
    private final transient WholeStageCodegenExec replaced;
    private final transient Optional<HashPartitioning> partitioning;
    private final long key;
    private final boolean packed;
    private transient volatile boolean unused;

    Writing(WholeStageCodegenExec replaced, Optional<HashPartitioning> partitioning, long key) {
      super(columns(replaced.child()), replaced.child());
      this.replaced = replaced;
      this.partitioning = partitioning;
      this.key = key;
      this.packed =
          partitioning.isEmpty()
              || child() instanceof SortExec
              || child().output().size() > MAX_COLUMNS
              || !types(child().output()).stream().allMatch(Writing::isSimple);
    }

    /** Spark calls this if it cannot use the generated code of this stage. */
    @Override
    public RDD<InternalRow> doExecute() {
      unused = true;
      return replaced.execute();
    }

    private static Seq<NamedExpression> columns(SparkPlan child) {
      return ScalaInterop.seq(
          CollectionConverters.asJava(child.output()).stream()
              .map(NamedExpression.class::cast)
              .toList());
    }

    private static boolean isSimple(DataType type) {
      return type instanceof DecimalType || SIMPLE.contains(CodeGenerator.javaType(type));
    }

    /** The columns that are variables when {@link #doConsume} is called. */
    @Override
    public AttributeSet usedInputs() {
      return packed ? AttributeSet$.MODULE$.empty() : child().outputSet();
    }

    @Override
    public String doConsume(CodegenContext context, Seq<ExprCode> input, ExprCode row) {
      String target =
          context.addMutableState(
              RowTarget.class.getName(), "rowTarget", variable -> "", true, true);
      String stage = context.addReferenceObj("stage", key, "java.lang.Long");
      String returned = context.freshName("returned");
      String code = row.code().toString();
      return String.join(
          "\n",
          "if (%1$s == null) %1$s = %2$s.open(%3$s, %4$s);"
              .formatted(target, RowTarget.class.getName(), stage, output().size()),
          "UnsafeRow " + returned + ";",
          packed || code.isEmpty()
              ? "%s\n%s = %s.write((UnsafeRow) %s);".formatted(code, returned, target, row.value())
              : fields(context, target, returned, input),
          "if (%1$s != null) append(%1$s);".formatted(returned));
    }

    private String fields(
        CodegenContext context, String target, String returned, Seq<ExprCode> input) {
      List<DataType> types = types(output());
      StringBuilder code = new StringBuilder();
      List<ExprCode> values = new ArrayList<>();
      for (int column = 0; column < types.size(); column++) {
        values.add(exact(context, types.get(column), input.apply(column), code));
      }
      context.currentVars_$eq(ScalaInterop.seq(values));
      context.INPUT_ROW_$eq(null);
      ExprCode partition = partitionId().genCode(context);
      return code.append(partition.code())
          .append('\n')
          .append(
              new RowCode(context, target, partition.value().toString(), returned)
                  .of(types, values))
          .toString();
    }

    /**
     * A decimal gets the scale of its column. As in Spark, it is null if it does not fit, or if a
     * source delivers null in a column that it declares without nulls.
     */
    private static ExprCode exact(
        CodegenContext context, DataType type, ExprCode value, StringBuilder code) {
      if (!(type instanceof DecimalType decimal)) {
        return value;
      }
      String missing = context.freshName("missing");
      code.append(
          "boolean %1$s = %2$s || %3$s == null || !%3$s.changePrecision(%4$s, %5$s);\n"
              .formatted(
                  missing, value.isNull(), value.value(), decimal.precision(), decimal.scale()));
      return new ExprCode(value.code(), JavaCode.isNullVariable(missing), value.value());
    }

    /** Spark's expression over the variables of the keys, which are plain columns. */
    private Expression partitionId() {
      HashPartitioning hash = partitioning.orElseThrow();
      int[] ordinals = HashBatchPartitioner.plainColumns(hash, child().output()).orElseThrow();
      List<Expression> keys = new ArrayList<>();
      for (int ordinal : ordinals) {
        keys.add(new BoundReference(ordinal, child().output().apply(ordinal).dataType(), true));
      }
      return new HashPartitioning(ScalaInterop.seq(keys), hash.numPartitions())
          .partitionIdExpression();
    }

    @Override
    public ProjectExec withNewChildInternal(SparkPlan child) {
      throw new UnsupportedOperationException("a direct stage is no part of a plan");
    }
  }

  /**
   * Code that writes a row in Spark's packed format: a word with a bit for each null, a field of 8
   * bytes for each column, then values of variable length.
   */
  private static final class RowCode {
    private static final String CLASS = RowTarget.class.getName();
    private static final int FIELD = Long.BYTES;
    private static final int WIDE_DECIMAL = 16;

    /** Spark packs no longer row. The failure is the query's and not one of the shuffle. */
    private static final int MAX_ROW_BYTES = ByteArrayMethods.MAX_ROUNDED_ARRAY_LENGTH;

    private final CodegenContext context;
    private final String target;
    private final String partition;
    private final String returned;
    private final String at;
    private final String offset;
    private final List<String> sizes = new ArrayList<>();
    private final List<String> fields = new ArrayList<>();
    private boolean variable;

    RowCode(CodegenContext context, String target, String partition, String returned) {
      this.context = context;
      this.target = target;
      this.partition = partition;
      this.returned = returned;
      this.at = context.freshName("at");
      this.offset = context.freshName("offset");
    }

    /**
     * Returns the code.
     *
     * @param values of the columns, already evaluated
     */
    String of(List<DataType> types, List<ExprCode> values) {
      int fixed = FIELD * (1 + types.size());
      String nulls = context.freshName("nulls");
      String size = context.freshName("size");
      for (int column = 0; column < types.size(); column++) {
        add(
            types.get(column),
            values.get(column),
            at + " + " + FIELD * (1 + column),
            nulls + " |= " + (1L << column) + "L;");
      }
      List<String> code = new ArrayList<>();
      sizes.add(0, fixed + "L");
      code.add("long %s = %s;".formatted(size, String.join(" + ", sizes)));
      code.add(
          "if (%s > %sL) throw new IllegalArgumentException(%s);"
              .formatted(
                  size, MAX_ROW_BYTES, "\"A row of \" + " + size + " + \" bytes is too long\""));
      code.add("long %s = %s.room(%s, %s);".formatted(at, target, partition, size));
      code.add("long %s = 0L;".formatted(nulls));
      if (variable) {
        code.add("long %s = %sL;".formatted(offset, fixed));
      }
      code.addAll(fields);
      code.add("Platform.putLong(null, %s, %s);".formatted(at, nulls));
      code.add("%s = %s.wrote(%s, %s, %s);".formatted(returned, target, partition, at, size));
      return String.join("\n", code);
    }

    private void add(DataType type, ExprCode input, String field, String setNull) {
      String value = input.value().toString();
      String isNull = input.isNull().toString();
      if (type instanceof DecimalType decimal) {
        if (decimal.precision() > Decimal.MAX_LONG_DIGITS()) {
          sizes.add(WIDE_DECIMAL + "L");
          fields.add("if (%s) %s".formatted(isNull, setNull));
          put("putDecimal", field, "%s ? null : %s".formatted(isNull, value));
          return;
        }
        value += ".toUnscaledLong()";
      }
      String java = CodeGenerator.javaType(type);
      int from = fields.size();
      switch (java) {
        case "UTF8String" -> addBytes("putText", field, value, isNull, value + ".numBytes()");
        case "byte[]" -> addBytes("putBytes", field, value, isNull, value + ".length");
        case "boolean" -> put(field, value + " ? 1L : 0L");
        case "float" -> put(field, "Float.floatToRawIntBits(" + value + ") & 0xFFFFFFFFL");
        case "double" -> put(field, "Double.doubleToRawLongBits(" + value + ")");
        case "byte" -> put(field, value + " & 0xFFL");
        case "short" -> put(field, value + " & 0xFFFFL");
        case "int" -> put(field, value + " & 0xFFFFFFFFL");
        default -> put(field, value);
      }
      if (!isNull.equals("false")) {
        fields.add(
            from,
            "if (%s) { %s Platform.putLong(null, %s, 0L); } else {"
                .formatted(isNull, setNull, field));
        fields.add("}");
      }
    }

    private void addBytes(String method, String field, String value, String isNull, String bytes) {
      sizes.add("(%s ? 0L : %s.padded(%s))".formatted(isNull, CLASS, bytes));
      put(method, field, value);
    }

    private void put(String method, String field, String value) {
      variable = true;
      fields.add(
          "%1$s = %2$s.%3$s(%4$s, %5$s, %1$s, %6$s);"
              .formatted(offset, CLASS, method, at, field, value));
    }

    private void put(String field, String value) {
      fields.add("Platform.putLong(null, %s, %s);".formatted(field, value));
    }
  }
}
