// Browsers start no worker from a file. Where the site is opened from a folder, a hidden frame runs
// the worker's script instead; on a server, nothing changes.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.documentElement.append(frame);
      const inner = frame.contentWindow;
      inner.postMessage = (data) => {
        const event = new MessageEvent("message", { data });
        this.onmessage?.(event);
        this.dispatchEvent(event);
      };
      inner.importScripts = () => {};
      this.frame = frame;
      this.ready = new Promise((resolve) => {
        const script = frame.contentDocument.createElement("script");
        script.src = url;
        script.onload = resolve;
        frame.contentDocument.head.append(script);
      });
    }

    async postMessage(data) {
      await this.ready;
      const inner = this.frame.contentWindow;
      const event = new MessageEvent("message", { data });
      inner.dispatchEvent(event);
    }

    terminate() {
      this.frame.remove();
    }
  };
}
