"use strict";

for (const button of document.querySelectorAll("button.copy")) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    const code = button.closest(".snippet").querySelector("pre");
    try {
      await navigator.clipboard.writeText(code.textContent);
      button.textContent = "Copied";
    } catch { // the clipboard is available only over https: select the text instead
      getSelection().selectAllChildren(code);
      button.textContent = "Selected";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  });
}

const form = document.querySelector("form.preview");
if (form) {
  const image = form.querySelector("img");
  const scale = form.querySelector(".scale");
  const note = form.querySelector(".state");
  let isLoading = false, isOutdated = false;

  const show = async () => {
    if (isLoading) {
      isOutdated = true;
      return;
    }
    isLoading = true;
    try {
      const answer = await fetch(`?picture&${new URLSearchParams(new FormData(form))}`);
      if (answer.ok) {
        const last = image.src;
        image.src = URL.createObjectURL(await answer.blob());
        URL.revokeObjectURL(last);
        [scale.dataset.low, scale.dataset.high] = answer.headers.get("Zarrlite-Range").split("/");
        note.textContent = scale.dataset.low === "" ? "no finite values" : "";
      } else {
        note.textContent = await answer.text();
      }
    } catch {
      note.textContent = "the server does not answer";
    }
    image.hidden = false;
    isLoading = false;
    if (isOutdated) {
      isOutdated = false;
      show();
    }
  };

  for (const slider of form.querySelectorAll("input[type=range]")) {
    const field = slider.parentElement.querySelector("input[type=number]");
    slider.hidden = false;
    slider.addEventListener("input", () => { field.value = slider.value; });
    field.addEventListener("input", () => { slider.value = field.value; });
  }
  form.addEventListener("input", (event) => { if (event.target.matches("input")) show(); });
  form.addEventListener("change", (event) => {
    if (event.target.matches("select")) { // drop the windows, which belong to the dimensions shown before
      for (const hidden of form.querySelectorAll("input[type=hidden]")) hidden.remove();
    }
    form.requestSubmit(); // load a new page, whose links contain the new position
  });
  show();
}
