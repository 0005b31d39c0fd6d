package io.weft.spark.compat;

import jakarta.servlet.http.HttpServletRequest;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.List;
import org.apache.spark.ui.SparkUITab;
import org.apache.spark.ui.UIUtils;
import scala.Function0;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.xml.Node;

/**
 * The header and footer of every page of the Spark UI. From Spark 4.2 on, the method that renders
 * them has one more parameter.
 */
public final class PageFrame {
  private static final MethodHandle HEADER = find();

  private PageFrame() {}

  /** Renders a page of a tab around its content. */
  @SuppressWarnings("unchecked")
  public static Seq<Node> around(
      HttpServletRequest request, String title, Node content, SparkUITab tab) {
    Seq<Node> nodes = CollectionConverters.asScala(List.of(content)).toSeq();
    Function0<Seq<Node>> body = () -> nodes;
    try {
      return (Seq<Node>) HEADER.invokeExact(request, title, body, tab);
    } catch (Throwable e) {
      throw Reflection.rethrow(e);
    }
  }

  /** Binds this Spark's defaults to the parameters after the tab. */
  private static MethodHandle find() {
    MethodType type =
        MethodType.methodType(
            Seq.class,
            HttpServletRequest.class,
            String.class,
            Function0.class,
            SparkUITab.class,
            Option.class,
            boolean.class,
            boolean.class);
    MethodHandles.Lookup lookup = MethodHandles.publicLookup();
    try {
      MethodHandle header = lookup.findStatic(UIUtils.class, "headerSparkPage", type);
      return MethodHandles.insertArguments(header, 4, Option.empty(), false, false);
    } catch (NoSuchMethodException e) {
      return find(lookup, type.appendParameterTypes(boolean.class));
    } catch (IllegalAccessException e) {
      throw new ExceptionInInitializerError(e);
    }
  }

  private static MethodHandle find(MethodHandles.Lookup lookup, MethodType type) {
    try {
      MethodHandle header = lookup.findStatic(UIUtils.class, "headerSparkPage", type);
      return MethodHandles.insertArguments(header, 4, Option.empty(), false, false, false);
    } catch (ReflectiveOperationException e) {
      throw new ExceptionInInitializerError(e);
    }
  }
}
