package io.weft.spark.sql;

import io.weft.spark.config.WeftSettings;
import io.weft.spark.gpu.DeviceFunction;
import java.util.Locale;
import java.util.Map;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.SparkEnv;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.FunctionIdentifier;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.ExpressionInfo;
import org.apache.spark.sql.catalyst.expressions.FunctionTableSubqueryArgumentExpression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.util.Utils;
import scala.Tuple3;
import scala.collection.immutable.Seq;
import scala.runtime.AbstractFunction1;

/**
 * The functions of {@link WeftGpu} in SQL, and the functions on batches that have a name there.
 * Thread-safe.
 */
final class GpuTableFunctions {
  private static final String ON_DEVICE = "weft_on_device";
  private static final String MAP_BATCHES = "weft_map_batches";

  /** By name in lower case; of all sessions of the application. */
  private static final Map<String, Registered> FUNCTIONS = new ConcurrentHashMap<>();

  private GpuTableFunctions() {}

  /** A function on batches and the schema of its tables. */
  private record Registered(StructType schema, DeviceFunction function) {}

  /** Names a function, in place of an earlier one of this name. */
  static void register(String name, StructType schema, DeviceFunction function) {
    FUNCTIONS.put(name.toLowerCase(Locale.ROOT), new Registered(schema, function));
  }

  /** Adds the functions to every session. */
  static void inject(SparkSessionExtensions extensions) {
    inject(extensions, ON_DEVICE, arguments -> OnDevice.of(table(ON_DEVICE, arguments, 0, 1)));
    inject(
        extensions,
        MAP_BATCHES,
        arguments -> mapped(arguments, table(MAP_BATCHES, arguments, 1, 2)));
  }

  /** Makes the plan of a call. */
  private interface Call {
    LogicalPlan plan(Seq<Expression> arguments);
  }

  private static void inject(SparkSessionExtensions extensions, String name, Call call) {
    extensions.injectTableFunction(
        new Tuple3<>(
            new FunctionIdentifier(name),
            new ExpressionInfo(WeftGpu.class.getName(), name),
            new AbstractFunction1<Seq<Expression>, LogicalPlan>() {
              @Override
              public LogicalPlan apply(Seq<Expression> arguments) {
                return call.plan(arguments);
              }
            }));
  }

  private static LogicalPlan mapped(Seq<Expression> arguments, LogicalPlan rows) {
    Expression first = arguments.apply(0);
    Object given = first.foldable() ? first.eval(null) : null;
    String name = String.valueOf(given).toLowerCase(Locale.ROOT);
    Registered registered = FUNCTIONS.get(name);
    if (registered == null) {
      registered = registeredBySettings(name);
    }
    if (registered == null) {
      throw new IllegalArgumentException(
          "%s: no function is registered as %s; WeftGpu.register and the classes of %s have"
                  .formatted(MAP_BATCHES, first.sql(), WeftSettings.GPU_FUNCTIONS)
              + " registered "
              + new TreeSet<>(FUNCTIONS.keySet()));
    }
    return WeftGpu.mapped(rows, registered.schema(), registered.function());
  }

  /** Runs the classes that the settings name; null if none of them registers the function. */
  private static Registered registeredBySettings(String name) {
    for (String each : WeftSettings.GPU_FUNCTIONS.get(SparkEnv.get().conf()).split(",", -1)) {
      if (!each.isBlank()) {
        run(each.strip());
      }
    }
    return FUNCTIONS.get(name);
  }

  private static void run(String className) {
    Runnable registers;
    try {
      registers =
          Class.forName(className, true, Utils.getContextOrSparkClassLoader())
              .asSubclass(Runnable.class)
              .getConstructor()
              .newInstance();
    } catch (ReflectiveOperationException | LinkageError | ClassCastException e) {
      throw new IllegalArgumentException(
          "%s names %s, which is no public class with a public constructor without arguments that"
                  .formatted(WeftSettings.GPU_FUNCTIONS, className)
              + " implements Runnable, in the driver's jars: "
              + e,
          e);
    }
    registers.run();
  }

  /** The rows of an argument {@code TABLE(...)}. */
  private static LogicalPlan table(
      String function, Seq<Expression> arguments, int index, int count) {
    if (arguments.size() != count
        || !(arguments.apply(index) instanceof FunctionTableSubqueryArgumentExpression table)) {
      throw new IllegalArgumentException(
          "call %s(%sTABLE(...)), not with %s"
              .formatted(function, index == 0 ? "" : "'name', ", arguments.mkString(", ")));
    }
    if (table.hasRepartitioning()) {
      throw new IllegalArgumentException(
          function + " takes a TABLE without partitioning; distribute its rows by a subquery");
    }
    return table.plan();
  }
}
