package io.weft.spark.ui;

import com.fasterxml.jackson.core.JsonProcessingException;
import io.weft.spark.compat.PageFrame;
import jakarta.servlet.http.HttpServletRequest;
import java.io.UncheckedIOException;
import org.apache.spark.SparkContext;
import org.apache.spark.ui.SparkUI;
import org.apache.spark.ui.SparkUITab;
import org.apache.spark.ui.UIUtils;
import org.apache.spark.ui.WebUIPage;
import org.json4s.JValue;
import org.json4s.jackson.JsonMethods$;
import scala.collection.immutable.Seq;
import scala.xml.Node;
import scala.xml.Unparsed;

/** The Weft tab of the Spark UI and of the history server: {@code weft/} and {@code weft/json}. */
public final class WeftTab extends SparkUITab {
  private WeftTab(SparkUI ui, TabContents contents) {
    super(ui, "weft");
    attachPage(new WeftPage(this, contents));
  }

  /** Adds the tab, if the application has a UI. */
  public static void attach(SparkContext context, TabContents contents) {
    if (context.ui().isDefined()) {
      attach(context.ui().get(), contents);
    }
  }

  static void attach(SparkUI ui, TabContents contents) {
    ui.attachTab(new WeftTab(ui, contents));
  }

  @Override
  public String name() {
    return "Weft";
  }

  /** The only page of the tab. {@link PageFrame} renders Spark's frame. */
  static final class WeftPage extends WebUIPage {
    private final WeftTab tab;
    private final TabContents contents;

    WeftPage(WeftTab tab, TabContents contents) {
      super("");
      this.tab = tab;
      this.contents = contents;
    }

    @Override
    public Seq<Node> render(HttpServletRequest request) {
      String stages = UIUtils.prependBaseUri(request, tab.basePath(), "/stages/stage/");
      TabRequest wanted = TabRequest.of(request::getParameter);
      String html = StatusHtml.of(contents, wanted, stages);
      return PageFrame.around(request, "Weft", new Unparsed(html), tab);
    }

    @Override
    public JValue renderJson(HttpServletRequest request) {
      String json = StatusJson.of(contents, TabRequest.of(request::getParameter));
      try {
        return JsonMethods$.MODULE$.mapper().readValue(json, JValue.class);
      } catch (JsonProcessingException e) {
        throw new UncheckedIOException(e);
      }
    }
  }
}
