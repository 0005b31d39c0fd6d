package io.weft.examples.jobs;

import io.weft.examples.side.SideTask;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Optional;
import java.util.function.UnaryOperator;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.SortOrder;
import org.apache.spark.sql.catalyst.plans.logical.GlobalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LocalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Sort;
import org.apache.spark.sql.catalyst.plans.logical.WithCTE;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.Dataset$;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Runs a query and returns its rows for a comparison.
 *
 * @param text the SQL
 */
public record QueryResult(String text) implements SideTask<ResultRows> {
  @Override
  public ResultRows run(SparkSession session) {
    return ResultRows.of(session.sql(text).collectAsList());
  }

  /**
   * Every result that a query may have. ORDER BY leaves the order of ties open, and LIMIT the
   * choice among them.
   *
   * @param ties rows with equal sort keys, in the order of the keys; each list may be in any order.
   *     The last one is complete even if LIMIT cuts it. A query without ORDER BY has one list
   * @param limit the number of rows at most
   */
  public record Allowed(List<ResultRows> ties, int limit) implements Serializable {
    public Allowed {
      ties = new ArrayList<>(ties);
    }

    /** Returns why rows are not a result of the query; empty if they are. */
    public Optional<String> objection(ResultRows actual) {
      int size = Math.min(limit, ties.stream().mapToInt(ResultRows::size).sum());
      if (actual.size() != size) {
        return Optional.of(actual.size() + " rows instead of " + size);
      }
      int from = 0;
      for (ResultRows tied : ties) {
        int to = from + tied.size();
        Optional<ResultRows.ResultRow> wrong = actual.part(from, to).surplusOver(tied);
        if (wrong.isPresent()) {
          return wrong.map(row -> "wrong, twice or at a wrong place: " + row);
        }
        from = to;
      }
      return Optional.empty();
    }
  }

  /**
   * Computes every result that a query may have: runs it without its LIMIT, with the values of its
   * ORDER BY beside the columns.
   *
   * @param text the SQL
   */
  public record EveryAllowed(String text) implements SideTask<Allowed> {
    @Override
    public Allowed run(SparkSession session) {
      Dataset<Row> query = (Dataset<Row>) session.sql(text);
      LogicalPlan plan = query.queryExecution().analyzed();
      UnaryOperator<LogicalPlan> outside = UnaryOperator.identity();
      if (plan instanceof WithCTE with) {
        outside = inner -> new WithCTE(inner, with.cteDefs());
        plan = with.plan();
      }
      int limit = Integer.MAX_VALUE;
      if (plan instanceof GlobalLimit global && global.child() instanceof LocalLimit local) {
        limit = (Integer) ((Literal) global.limitExpr()).value();
        plan = local.child();
      }
      int columns = plan.output().size();
      Dataset<Row> all =
          Dataset$.MODULE$.ofRows(
              (org.apache.spark.sql.classic.SparkSession) session, outside.apply(withKeys(plan)));
      return new Allowed(ties(all.toLocalIterator(), columns, limit), limit);
    }

    /** Adds the sort keys of a plan as last columns of its output. */
    private static LogicalPlan withKeys(LogicalPlan plan) {
      boolean hidesKeys = plan instanceof Project project && project.child() instanceof Sort;
      if (!((hidesKeys ? ((Project) plan).child() : plan) instanceof Sort sort)) {
        return plan;
      }
      List<NamedExpression> columns = new ArrayList<>();
      if (plan instanceof Project project) {
        columns.addAll(CollectionConverters.asJava(project.projectList()));
      } else {
        columns.addAll(CollectionConverters.asJava(sort.output()));
      }
      for (SortOrder order : CollectionConverters.asJava(sort.order())) {
        columns.add(key(order.child()));
      }
      return new Project(CollectionConverters.asScala(columns).toSeq(), sort);
    }

    private static NamedExpression key(Expression value) {
      Seq<String> none = CollectionConverters.asScala(List.<String>of()).toSeq();
      return new Alias(value, "key", NamedExpression.newExprId(), none, scala.Option.empty(), none);
    }

    private static List<ResultRows> ties(Iterator<Row> rows, int columns, int limit) {
      List<ResultRows> ties = new ArrayList<>();
      List<ResultRows.ResultRow> tied = new ArrayList<>();
      ResultRows.ResultRow last = null;
      int count = 0;
      while (rows.hasNext()) {
        Row row = rows.next();
        ResultRows.ResultRow key = ResultRows.ResultRow.of(row, columns, row.size());
        if (last != null && !last.matches(key)) {
          ties.add(new ResultRows(tied));
          tied.clear();
          if (count >= limit) {
            return ties;
          }
        }
        last = key;
        tied.add(ResultRows.ResultRow.of(row, 0, columns));
        count++;
      }
      ties.add(new ResultRows(tied));
      return ties;
    }
  }
}
