package io.weft.tests.application;

import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.FunctionIdentifier;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.ExpressionInfo;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.types.DataTypes;
import scala.Function1;
import scala.Tuple3;
import scala.collection.immutable.Seq;
import scala.runtime.AbstractFunction1;
import scala.runtime.BoxedUnit;

/** An extension that a user had before Weft: it adds a function. */
public final class UserExtensions extends AbstractFunction1<SparkSessionExtensions, BoxedUnit> {
  @Override
  public BoxedUnit apply(SparkSessionExtensions extensions) {
    Function1<Seq<Expression>, Expression> function =
        arguments -> new Literal(42, DataTypes.IntegerType);
    extensions.injectFunction(
        new Tuple3<>(
            new FunctionIdentifier("user_function"),
            new ExpressionInfo(UserExtensions.class.getName(), "user_function"),
            function));
    return BoxedUnit.UNIT;
  }
}
